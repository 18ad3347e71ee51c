"""The scripted model with calls of one's own: its tokens are whole words of its script, so other words make other calls."""

from __future__ import annotations

import itertools
import json
import struct
from pathlib import Path
from typing import Any

from tests.providers.backends.llamacpp import SERVER

MODEL = SERVER / "scripted.gguf"
# The words of the two calls that the model chooses from, in the order in which it says them. Source: make_scripted.py
# beside it.
CALLS = (
    ('\n{"name": "get_weather", "arguments": {"city": "', "Oslo", '", "unit": ', '"c"', "}}\n"),
    ('\n{"name": "add", "arguments": {"a": ', "12", ', "b": ', "30", "}} \n"),
)
UNUSED = "<|pad%d|>"  # words that it never says
ALIGNED = 32  # bytes: what follows the words in the file begins at a multiple of this


def model_that_calls(folder: Path, name: str, arguments: Any) -> Path:
    """Return a copy of the model, in `folder`, that calls this tool where tools are given, sometimes twice at once."""
    held = MODEL.read_bytes()
    text = json.dumps({"name": name, "arguments": arguments})
    for longer, words in enumerate(CALLS):  # both say the same, in other words: none may be there twice
        for old, new in zip(words, _pieces(f"\n{text}\n", len(words), longer), strict=True):
            held = _replaced(held, old, new)
    filler = next(one for at in range(10_000) if _word(one := UNUSED % at) in held)
    padded = filler[:-2] + " " * (-(len(held) - MODEL.stat().st_size) % ALIGNED) + filler[-2:]
    made = folder / "calling.gguf"
    made.write_bytes(_replaced(held, filler, padded))
    return made


def _pieces(text: str, count: int, longer: int) -> list[str]:
    """Return a text in so many pieces of the same size; the first one is `longer` by so many characters, and the last
    one is what is left."""
    size = len(text) // (count + 1)
    cuts = [0, *(longer + size * at for at in range(1, count)), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(cuts)]


def _replaced(held: bytes, old: str, new: str) -> bytes:
    assert held.count(_word(old)) == 1, f"the model has not the word {old!r} once"
    assert _word(new) not in held, f"the model has the word {new!r} already"
    return held.replace(_word(old), _word(new))


def _word(text: str) -> bytes:
    """Return a word as it is in the file. Source: the GGUF specification, `gguf_string_t`."""
    data = text.encode()
    return struct.pack("<Q", len(data)) + data
