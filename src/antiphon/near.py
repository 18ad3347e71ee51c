"""Which name was meant: for messages about one that is misspelt."""

from __future__ import annotations

from collections.abc import Iterable

LIKE = 0.7  # of difflib's ratio: one letter wrong in four is still the same word to a reader
LONGEST = 100  # characters of a word that may be a misspelt name


def nearest(word: str, known: Iterable[str], like: float = LIKE) -> str | None:
    """Return the one of `known` that is spelt most like `word`, whatever their case; None where none is near."""
    from difflib import get_close_matches

    if len(f"{word}") > LONGEST:
        return None
    folded = {one.casefold(): one for one in known}
    found = get_close_matches(f"{word}".casefold(), folded, n=1, cutoff=like)
    return folded[found[0]] if found else None


def listing(word: str, known: Iterable[str], there: str = "known are:") -> str:
    """Return how a message goes on after a name that is not known: the one that is meant, if one is near, and all."""
    names = list(known)
    close, every = nearest(word, names), ", ".join(names) or "none"
    return f"; {there} {every}" if close is None else f"; did you mean {close!r}? {there.capitalize()} {every}"
