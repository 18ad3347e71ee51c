"""`shrink`: the smallest stream that still breaks the same rule, by delta debugging.

Blocks of the stream are left out, from all of it down to one value; then fields, level by level; then characters. What
still breaks is kept, and it begins again until a whole round makes nothing smaller: then no chunk, field or character
can be left out by itself. The order is fixed, so the same stream shrinks the same way. Source: Zeller and Hildebrandt,
"Simplifying and Isolating Failure-Inducing Input" (2002); Misherghi and Su, "HDD: Hierarchical Delta Debugging" (2006).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeAlias, TypeVar, cast

from antiphon.errors import BadInput

T = TypeVar("T")
Stream: TypeAlias = list[Any]
Path: TypeAlias = tuple[str | int, ...]  # keys and places, from the stream on
Breaks: TypeAlias = Callable[[Stream], bool]
# A way of making a stream smaller: it asks whether a candidate still breaks, and returns the smallest that does.
Pass: TypeAlias = Callable[[Stream, Breaks], Stream]

# Values that are names of things, not content: shorter ones are other things.
NAMES = frozenset({"type", "object", "role", "status", "finish_reason"})


@dataclass(frozen=True, slots=True)
class Budget:
    """How much is tried: so many candidates, for so many seconds."""

    tries: int = 5000
    seconds: float = 60.0

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Return the budget that `text` says: `500`, `30s`, `2m`, or tries and a time with a comma between them.

        Raises BadInput for anything else.
        """
        found: dict[str, Any] = {}
        for part in text.split(","):
            match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|m|)\s*", part)
            name = "tries" if match and not match[2] else "seconds"
            if match is None or name in found or (name == "tries" and "." in match[1]):
                raise BadInput(f"--budget {text!r}: give tries, a time, or both, such as 500, 30s, 2m or 500,30s")
            found[name] = int(match[1]) if name == "tries" else float(match[1]) * (60 if match[2] == "m" else 1)
        return cls(**found)


@dataclass(frozen=True, slots=True)
class Size:
    """How big a stream is: its values, and the characters of their JSON."""

    values: int
    characters: int

    @classmethod
    def of(cls, stream: Sequence[Any]) -> Size:
        """Return the size of a stream."""
        return cls(len(stream), sum(len(_json(value)) for value in stream))


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it got: what is being left out, how often it was tried, and how big the smallest stream is."""

    stage: str
    tries: int
    size: Size


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The smallest stream that was found. `stopped` says why the search ended early, "" where nothing smaller breaks."""

    stream: Stream
    before: Size
    after: Size
    tries: int
    stopped: str = ""

    @property
    def smallest(self) -> bool:
        """Whether nothing can be left out any more, by any of the passes."""
        return not self.stopped


class _Spent(Exception):
    """The budget is used up; the message says which part."""


@dataclass(slots=True)
class _Search:
    """Asks whether candidates break, never the same one twice, until the budget is spent. `best` is the smallest."""

    breaks: Breaks
    best: Stream
    budget: Budget
    tell: Callable[[Progress], None]
    clock: Callable[[], float]
    stage: str = ""
    tries: int = 0
    until: float = 0.0
    size: Size = field(init=False)
    seen: set[bytes] = field(default_factory=set[bytes])

    def __post_init__(self) -> None:
        self.until = self.clock() + self.budget.seconds
        self.size = Size.of(self.best)

    def __call__(self, candidate: Stream) -> bool:
        """Return whether `candidate` still breaks; then it is the best."""
        key = blake2b(_json(candidate).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if key in self.seen:
            return False
        self._spend()
        self.seen.add(key)
        if not self.breaks(candidate):
            return False
        self.best, self.size = candidate, Size.of(candidate)
        return True

    def _spend(self) -> None:
        if self.tries >= self.budget.tries:
            raise _Spent(f"the budget of {self.budget.tries:,} tries is spent")
        if self.clock() >= self.until:
            raise _Spent(f"the budget of {self.budget.seconds:g} s is spent")
        self.tries += 1
        self.tell(Progress(self.stage, self.tries, self.size))


def shrink(
    stream: Sequence[Any],
    breaks: Breaks,
    *,
    budget: Budget | None = None,
    first: Sequence[Pass] = (),
    tell: Callable[[Progress], None] = lambda progress: None,
    clock: Callable[[], float] = time.monotonic,
) -> Shrunk:
    """Return the smallest stream for which `breaks` holds that the passes find.

    `breaks` must hold for `stream`: BadInput is raised where it does not. `first` are passes that know more of the
    stream than that it is JSON. An interrupt ends the search as a spent budget does: the best so far is returned.
    """
    whole = list(stream)
    if not breaks(whole):
        raise BadInput("the stream does not break as it is, so there is nothing to shrink")
    search = _Search(breaks, whole, budget or Budget(), tell, clock)
    stopped = ""
    try:
        _rounds(search, (*first, *PASSES))
    except _Spent as spent:
        stopped = str(spent)
    except KeyboardInterrupt:
        stopped = "interrupted"
    return Shrunk(search.best, Size.of(whole), search.size, search.tries, stopped)


def _rounds(search: _Search, passes: Iterable[Pass]) -> None:
    """Run all passes again and again, until a round changes nothing."""
    passes = tuple(passes)
    before: Stream | None = None
    while before != search.best:
        before = search.best
        for one in passes:
            search.stage = one.__name__.strip("_")
            one(search.best, search)


# --- the passes ----------------------------------------------------------------------------------------------------


def minimise(atoms: Sequence[T], breaks: Callable[[list[T]], bool]) -> list[T]:
    """Return the atoms that cannot be left out one by one. Blocks are tried from the largest on, from the end."""
    kept, size = list(atoms), len(atoms)
    while size:
        before, end = len(kept), len(kept)
        while end > 0:
            candidate = kept[: max(0, end - size)] + kept[end:]
            if breaks(candidate):
                kept = candidate
            end = max(0, end - size)
        if size > 1 or len(kept) == before:
            size //= 2
    return kept


def values(stream: Stream, breaks: Breaks) -> Stream:
    """Leave out whole values of the stream: chunks, or events."""
    return minimise(stream, breaks)


def fields(stream: Stream, breaks: Breaks) -> Stream:
    """Leave out keys of objects and entries of lists, those that hold others first."""
    depth = 2
    while nodes := [path for path in paths(stream) if len(path) == depth]:
        stream = _without_some(stream, nodes, breaks)
        depth += 1
    return stream


def _without_some(stream: Stream, nodes: Sequence[Path], breaks: Breaks) -> Stream:
    """Return the stream without those of `nodes` that can be left out."""

    def kept(some: Iterable[Path]) -> Stream:
        wanted = set(some)
        left: Stream = without(stream, [path for path in nodes if path not in wanted])
        return left

    return kept(minimise(nodes, lambda some: breaks(kept(some))))


def texts(stream: Stream, breaks: Breaks) -> Stream:
    """Leave out characters of texts."""
    for path in [path for path in paths(stream) if path[-1] not in NAMES]:
        stream = _shorter(stream, path, breaks)
    return stream


def _shorter(stream: Stream, path: Path, breaks: Breaks) -> Stream:
    """Return the stream with the text at `path` as short as it can be."""
    text = at(stream, path)
    if not isinstance(text, str):
        return stream
    kept: Stream = put(stream, path, "".join(minimise(text, lambda some: breaks(put(stream, path, "".join(some))))))
    return kept


PASSES: tuple[Pass, ...] = (values, fields, texts)


# --- paths in a stream ---------------------------------------------------------------------------------------------


def paths(value: Any, at: Path = ()) -> Iterator[Path]:
    """Yield the paths of all that is in `value`, outer ones before inner ones, in order."""
    for key in _keys(value):
        yield (*at, key)
        yield from paths(value[key], (*at, key))


def at(value: Any, path: Path) -> Any:
    """Return what is at `path`."""
    for key in path:
        value = value[key]
    return value


def put(value: Any, path: Path, new: Any) -> Any:
    """Return `value` with `new` at `path`; `value` stays as it is."""
    if not path:
        return new
    key, rest = path[0], path[1:]
    copy: Any = value.copy()
    copy[key] = put(value[key], rest, new)
    return copy


def without(value: Any, gone: Sequence[Path]) -> Any:
    """Return `value` without what is at these paths; `value` stays as it is."""
    here = {path[0] for path in gone if len(path) == 1}
    deeper: dict[str | int, list[Path]] = {}
    for path in gone:
        if len(path) > 1 and path[0] not in here:
            deeper.setdefault(path[0], []).append(path[1:])
    if not here and not deeper:
        return value
    kept = {key: value[key] for key in _keys(value) if key not in here}
    changed = {key: without(one, deeper[key]) if key in deeper else one for key, one in kept.items()}
    return changed if isinstance(value, dict) else list(changed.values())


def _keys(value: Any) -> Iterable[str | int]:
    """Return the keys of an object, the places of a list, nothing of anything else."""
    kind: object = type(cast("object", value))
    return tuple(value) if kind is dict else range(len(value)) if kind is list else ()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
