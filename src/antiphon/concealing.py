"""Keeps keys out of what is told: those that are known, as they are, and others by their look."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from antiphon.stream.faults import redact

_LONGEST = 2000  # characters of what a provider said that are looked at
_SHORTEST = 6  # what is shorter is a placeholder, not a key
_SECRET_NAMES = re.compile(r"auth|key|token|secret|cookie|password", re.IGNORECASE)


class Hide:
    """Gives a text without `secrets`, and without what looks like a key."""

    def __init__(self, secrets: Iterable[str | None] = ()) -> None:
        known = {one for one in secrets if one and len(one) >= _SHORTEST}
        self.secrets = sorted(known, key=len, reverse=True)  # one may be a part of another

    def __call__(self, text: str) -> str:
        return redact(self.known(text)[:_LONGEST])  # hidden before anything is cut, so that no half of one is left

    def known(self, text: str) -> str:
        """Return the whole `text` without the secrets."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def concealed(data: Any, hide: Callable[[str], str]) -> Any:
    """Return plain JSON data with each of its texts hidden, at any depth; keys of objects stay."""
    if isinstance(data, str):
        return hide(data)
    if isinstance(data, list):
        return [concealed(one, hide) for one in data]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(data, dict):
        return {key: concealed(one, hide) for key, one in data.items()}  # pyright: ignore[reportUnknownVariableType]
    return data


def secret_values(named: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the values of headers or query parameters whose names say that they are secret, also without a scheme."""
    for name, value in (named or {}).items():
        if _SECRET_NAMES.search(name):
            yield str(value)
            yield str(value).rpartition(" ")[2]
