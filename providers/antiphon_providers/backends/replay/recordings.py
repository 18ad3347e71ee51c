"""Recorded answers: files of an SSE body (`.sse`), of chunks (`.jsonl`), of a whole completion (`.json`).

Beside a file, `NAME.meta.json` may tell the `status` and the `headers` of the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from antiphon.errors import BadInput
from antiphon_providers.backends.concealing import Hide
from antiphon_providers.backends.failures import failure_of_answer

from .playing import DONE_EVENT, Json, Played, event, held

_SUFFIXES = (".sse", ".jsonl", ".json")
_META = ".meta.json"
_MESSAGE = re.compile(rb".+?(?:\r?\n\r?\n|\r\r|\Z)", re.DOTALL)


def recordings_in(path: str | Path) -> dict[str, Path]:
    """Return the recordings under a folder, or the one file, by name: the path from there, without suffix.

    Raises BadInput where there is none.
    """
    place = Path(path)
    if place.is_file():
        return {place.stem: place}
    found = sorted(one for one in place.rglob("*") if one.suffix in _SUFFIXES and not one.name.endswith(_META))
    if not found:
        raise BadInput(f"there is no recording in {str(path)!r}: no file that ends with {', '.join(_SUFFIXES)}")
    return {one.relative_to(place).with_suffix("").as_posix(): one for one in found}


def play_recording(path: Path) -> Played:
    """Return the recorded answer. Raises a ProviderError where its status says that the request was refused."""
    body = path.read_bytes()
    meta_path = path.with_name(path.stem + _META)
    meta: Mapping[str, Any] = json.loads(meta_path.read_bytes()) if meta_path.exists() else {}
    status = meta.get("status", 200)
    if status >= 400:
        headers = {str(name).lower(): str(value) for name, value in held(meta, "headers").items()}
        raise failure_of_answer(status, headers, body, Hide())
    if path.suffix == ".jsonl":
        return Played(tuple(b"data: %b\n\n" % line for line in body.splitlines() if line.strip()))
    whole = _whole(body)
    if whole is not None:
        return Played((event(whole), *([DONE_EVENT] if whole.get("choices") else [])), whole=whole)
    return Played(tuple(_MESSAGE.findall(body)))


def _whole(body: bytes) -> Json | None:
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType]
