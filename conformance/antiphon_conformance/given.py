"""What an adapter gave, kept as it was at that moment.

An adapter may yield the same dict again and again, change later what it gave, or give what is no JSON at all. Each
event is copied as it comes, as a consumer that writes it to a socket does, so that what is judged is what was given,
and nothing of the adapter's runs while it is judged.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from .read import plain

MOST_BYTES = 64 * 1024 * 1024  # of one answer: what goes on is taken for no end
DEEPEST, MOST_VALUES = 100, 100_000  # levels and values of an event that is no plain JSON
# Of a whole number. Python neither reads nor writes more than 4300 digits. Source: sys.int_info.default_max_str_digits.
_MOST_BITS = 14_000


@dataclass(frozen=True, slots=True)
class Foreign:
    """A value that is no JSON; `what` says what it is. No rule takes it for anything else."""

    what: str

    def __repr__(self) -> str:
        return f"<{self.what}>"


@dataclass(slots=True)
class Given:
    """The events that came so far. `limit` is how many there may be; nothing more is taken once it is `closed`."""

    limit: int
    events: list[Any] = field(default_factory=list[Any])
    size: int = 0
    closed: bool = False

    def take(self, event: object) -> str:
        """Keep an event. Returns why no more is taken, "" where more is."""
        if self.closed:
            return "events after its time"
        copy, size = copied(event)
        self.size += size
        if self.size > MOST_BYTES:
            return f"{self.size} characters in {len(self.events) + 1} events"
        self.events.append(copy)
        return f"{len(self.events)} events" if len(self.events) >= self.limit else ""


def copied(event: object) -> tuple[Any, int]:
    """Return an event as JSON has it, and about how many characters that is. Text and bytes are pieces of a body, and
    stay as they are; a model object becomes a dict."""
    if isinstance(event, str | bytes):
        return event, len(event)
    held = plain(event)
    value = event if held is None else held
    try:
        written = json.dumps(value)
        return json.loads(written), len(written)
    except (TypeError, ValueError, RecursionError):
        copy = _Copier().copy(value)
        return copy, _size(copy)


@dataclass(slots=True)
class _Copier:
    """Copies what is no plain JSON: all that is foreign, endless or in itself becomes `Foreign`."""

    values: int = MOST_VALUES
    within: set[int] = field(default_factory=set[int])  # the lists and dicts that are being copied

    def copy(self, value: object) -> Any:
        """Return a copy of one value."""
        self.values -= 1
        if self.values < 0:
            return Foreign(f"more than {MOST_VALUES} values")
        match value:
            case None | bool() | float():
                return value
            case int():
                return int(value) if value.bit_length() < _MOST_BITS else Foreign(f"int of {value.bit_length()} bits")
            case str():
                return str.__str__(value)
            case list() | tuple() | dict():
                return self._held(value)  # pyright: ignore[reportUnknownArgumentType]
            case _:
                return Foreign(f"{type(value).__module__}.{type(value).__qualname__}")

    def _held(self, value: list[Any] | tuple[Any, ...] | dict[Any, Any]) -> Any:
        if id(value) in self.within:
            return Foreign("itself")
        if len(self.within) >= DEEPEST:
            return Foreign(f"more than {DEEPEST} levels")
        self.within.add(id(value))
        try:
            if isinstance(value, dict):
                return {str.__str__(key): self.copy(one) for key, one in value.items() if isinstance(key, str)}
            return [self.copy(one) for one in value]
        finally:
            self.within.discard(id(value))


def _size(copy: Any) -> int:
    """Return about how many characters the JSON of a copy has."""
    match copy:
        case str():
            return len(copy)
        case list():
            return 2 + sum(map(_size, copy))  # pyright: ignore[reportUnknownArgumentType]
        case dict():
            return 2 + sum(map(_size, copy)) + sum(map(_size, copy.values()))  # pyright: ignore[reportUnknownArgumentType]
        case _:
            return 4
