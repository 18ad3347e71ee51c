"""Which name was meant: what messages say of one that is misspelt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.near import LONGEST, listing, nearest

NAMES = ("anthropic", "bedrock", "gemini", "groq", "ollama", "openai", "vllm")

# word -> the name that is meant
WORDS: dict[str, str | None] = {
    **{name: name for name in NAMES},
    "OLLAMA": "ollama",
    "olama": "ollama",
    "vlm": "vllm",
    "grok": "groq",
    "bedrok": "bedrock",
    "open-ai": "openai",
    "": None,
    "no-such": None,
    "chorale": None,
    "o" * (LONGEST + 1): None,
}


@pytest.mark.parametrize("word", WORDS)
def test_the_name_that_is_meant(word: str) -> None:
    assert nearest(word, NAMES) == WORDS[word]


@given(st.sampled_from([name for name in NAMES if len(name) > 4]), st.data())
def test_a_letter_that_is_missing_twice_or_another_hides_no_name(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(name) - 1))
    instead = data.draw(st.sampled_from(["", "q", name[at] * 2]))
    assert nearest(name[:at] + instead + name[at + 1 :], NAMES) == name


@pytest.mark.parametrize(
    ("word", "known", "said"),
    [
        ("olama", NAMES, f"; did you mean 'ollama'? Known are: {', '.join(NAMES)}"),
        ("chorale", NAMES, f"; known are: {', '.join(NAMES)}"),
        ("chorale", (), "; known are: none"),
    ],
)
def test_a_message_goes_on_with_all_names(word: str, known: tuple[str, ...], said: str) -> None:
    assert listing(word, known) == said
