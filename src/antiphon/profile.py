"""`Profile`: the frozen facts about a provider, and where profiles come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from .errors import BadInput, ProfileNotFound

if TYPE_CHECKING:
    from .stream.deltas import Delta

GROUP = "antiphon.providers"


class Transducer(Protocol):
    """A quirk at work on one stream: deltas in, deltas out."""

    def feed(self, one: Delta) -> Sequence[Delta]:
        """Return what `one` becomes, in order; called once a delta."""
        ...

    def finish(self) -> Sequence[Delta]:
        """Return what was kept back; called once, at the end of the stream."""
        ...


@runtime_checkable
class Quirk(Protocol):
    """Something about a provider that data cannot say: it makes one `Transducer` for each stream."""

    def start(self) -> Transducer:
        """Return a fresh transducer."""
        ...


# Where reasoning is found in a delta, in the order in which different texts are joined.
REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")


@dataclass(frozen=True, slots=True)
class Profile:
    """What is odd about a provider's chunk stream. The default is the tolerant one: it fits any provider.

    `reasoning_fields`: names of delta fields that hold reasoning text.
    `finish_reason_optional`: the stream may end without a finish_reason and still be complete.
    `quirks`: applied to the deltas, in order.
    """

    name: str = "default"
    reasoning_fields: tuple[str, ...] = REASONING_FIELDS
    finish_reason_optional: bool = False
    quirks: tuple[Quirk, ...] = ()


DEFAULT = Profile()


def load_profile(name: str) -> Profile:
    """Return the profile called `name`, from the entry-point group `antiphon.providers`.

    Raises ProfileNotFound, which lists the known names, and BadInput where an entry point is not a `Profile`.
    """
    if name == DEFAULT.name:
        return DEFAULT
    from importlib.metadata import entry_points  # costs 27 ms, and most conversions name no profile

    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        known = ", ".join(sorted({DEFAULT.name, *points}))
        raise ProfileNotFound(f"no profile is called {name!r}; known are: {known}. Give a `Profile` to use your own")
    profile = points[name].load()
    if not isinstance(profile, Profile):
        raise BadInput(f"entry point {name!r} of {GROUP!r} is a {type(profile).__name__}, not a Profile")
    return profile
