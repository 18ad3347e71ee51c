"""A stream from near: chunks on one side, events on the other, the items and parts that were open between them.

`close_up` returns the lines around a place. What an adapter does with a chunk is its own affair, so the two sides are
laid beside each other by what they say: an event stands at the chunk that has its text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from .bars import Row, Timeline
from .beside import beside
from .told import fields_or_empty, said_by, told_by

BEFORE, AFTER = 9, 6  # events before and after the place
WHOLE, EDGE = 24, 6  # where no place is given: events of a stream that is shown whole, else at each end
CHUNKS_BEFORE, CHUNKS_AFTER = 5, 3  # the same for a place among the chunks
LANES = 6  # bars beside each other
SILENT = 2  # of many chunks without an event, those shown at each end

Side: TypeAlias = Literal["events", "chunks"]


@dataclass(frozen=True, slots=True)
class Lane:
    """A bar at one line: whose it is, and whether it begins or ends there."""

    kind: str
    part: bool = False  # of a part, not of an item
    first: bool = False
    last: bool = False


Lanes: TypeAlias = tuple[Lane | None, ...]  # None where a lane is free


@dataclass(frozen=True, slots=True)
class Line:
    """One line: a chunk, an event, or both.

    `mark` is what is wrong here, in a word; `here` whether it is the place that was asked for.
    """

    chunk: int | None = None
    said: str = ""
    event: int | None = None
    type: str = ""
    place: str = ""
    text: str = ""
    lanes: Lanes = ()
    mark: str = ""
    here: bool = False


@dataclass(frozen=True, slots=True)
class Gap:
    """Lines that are left out: so many chunks and events."""

    chunks: int
    events: int


class SideBySide:
    """A stream and what it was made of, read once, for any number of close-ups."""

    def __init__(self, events: Sequence[object], chunks: Sequence[object] = ()) -> None:
        self.events = events
        self.chunks = chunks

    @cached_property
    def timeline(self) -> Timeline:
        """The picture of all events; what is no event counts as one that says nothing."""
        return Timeline(map(fields_or_empty, self.events))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The bars of the timeline."""
        return self.timeline.rows

    @cached_property
    def stands(self) -> list[int]:
        """The chunk at which each event stands, -1 without chunks."""
        return beside(self.chunks, self.events)

    def close_up(
        self, at: int | None = None, *, side: Side = "events", marks: Mapping[int, str] | None = None
    ) -> tuple[Line | Gap, ...]:
        """Return the lines around place `at` of a side, or both ends of the stream where it is None.

        `marks` are words for places of that side. The lines are few, however long the stream is.
        """
        return tuple(_View(self, at, side, marks or {}).lines())


def close_up(
    events: Sequence[object],
    chunks: Sequence[object] = (),
    at: int | None = None,
    *,
    side: Side = "events",
    marks: Mapping[int, str] | None = None,
) -> tuple[Line | Gap, ...]:
    """Return the lines around a place: `SideBySide.close_up` for one place alone. Its time is linear."""
    return SideBySide(events, chunks).close_up(at, side=side, marks=marks)


@dataclass(slots=True)
class _View:
    both: SideBySide
    at: int | None
    side: Side
    marks: Mapping[int, str]
    events: Sequence[object] = field(init=False)
    chunks: Sequence[object] = field(init=False)
    stands: list[int] = field(init=False)
    shown: list[range] = field(init=False)  # the events that are shown
    lanes: dict[int, Lanes] = field(init=False)
    chunks_told: int = 0  # chunks before this one are shown or left out

    def __post_init__(self) -> None:
        self.events, self.chunks, self.stands = self.both.events, self.both.chunks, self.both.stands
        self.shown = [run for run in self._around() if run]
        self.lanes = _lanes(self.both.rows, self.shown)

    def _around(self) -> list[range]:
        total = len(self.events)
        if self.at is not None and self.side == "chunks" and self.chunks:
            return [self._around_chunk(self.at)]
        if self.at is not None and self.side == "events":
            return [range(max(0, self.at - BEFORE), min(total, self.at + AFTER + 1))]
        return [range(total)] if total <= WHOLE else [range(EDGE), range(total - EDGE, total)]

    def _around_chunk(self, at: int) -> range:
        """Return the events that stand near a chunk."""
        first, middle, last = (bisect_right(self.stands, at + by) for by in (-CHUNKS_BEFORE - 1, 0, CHUNKS_AFTER))
        return range(max(first, middle - BEFORE), min(last, middle + AFTER + 1))

    def lines(self) -> Iterator[Line | Gap]:
        events_told = 0
        for run in self.shown:
            begin = self._first_chunk(run)
            if begin > self.chunks_told or run.start > events_told:
                yield Gap(begin - self.chunks_told, run.start - events_told)
            self.chunks_told = begin
            for event in run:
                yield from self._until(self.stands[event], self.lanes[event])
                yield self._line(event)
            events_told = run.stop
        yield from self._rest(len(self.events) - events_told)

    def _first_chunk(self, run: range) -> int:
        """Return the first chunk to show with a run of events."""
        first = max(self.stands[run.start], 0)
        if run.start == 0:
            first = 0
        elif self.side == "chunks" and self.at is not None:
            first = min(first, max(0, self.at - CHUNKS_BEFORE))
        return max(self.chunks_told, first)

    def _rest(self, events: int) -> Iterator[Line | Gap]:
        """Yield what comes after the last event that is shown."""
        total = len(self.chunks)
        if self.side == "chunks" and self.at is not None:
            yield from self._until(min(total, self.at + CHUNKS_AFTER + 1), ())
        if events == 0:
            yield from self._until(total, ())
        elif events or total > self.chunks_told:
            yield Gap(total - self.chunks_told, events)

    def _until(self, end: int, lanes: Lanes) -> Iterator[Line | Gap]:
        """Yield the chunks up to `end` at which no event stands; of many, those at the ends and near the place."""
        begin = self.chunks_told
        going = tuple(Lane(lane.kind, lane.part) if lane and not lane.first else None for lane in lanes)
        for at in range(begin, end):
            if not (at < begin + SILENT or at >= end - SILENT or self._near(at)):
                continue
            if at > self.chunks_told:
                yield Gap(at - self.chunks_told, 0)
            self.chunks_told = at + 1
            yield Line(at, said_by(self.chunks[at]), lanes=going, mark=self._mark(at), here=self._is_here(at))
        self.chunks_told = max(self.chunks_told, end)

    def _near(self, chunk: int) -> bool:
        return self.side == "chunks" and self.at is not None and abs(chunk - self.at) <= CHUNKS_AFTER

    def _mark(self, chunk: int | None, event: int | None = None) -> str:
        place = event if self.side == "events" else chunk
        return self.marks.get(place, "") if place is not None else ""

    def _is_here(self, chunk: int | None, event: int | None = None) -> bool:
        return self.at is not None and self.at == (event if self.side == "events" else chunk)

    def _line(self, event: int) -> Line:
        """Return the line of an event, with its chunk where it is the first event there."""
        chunk = self.stands[event] if self.stands[event] >= self.chunks_told else None
        self.chunks_told = max(self.chunks_told, self.stands[event] + 1)
        type, place, text = told_by(self.events[event])
        said = said_by(self.chunks[chunk]) if chunk is not None else ""
        mark, here = self._mark(chunk, event), self._is_here(chunk, event)
        return Line(chunk, said, event, type, place, text, self.lanes[event], mark, here)


def _lanes(every: Sequence[Row], shown: Sequence[range]) -> dict[int, Lanes]:
    """Return the bars at each event that is shown. Bars that do not overlap share a lane."""
    rows = [row for row in every if any(row.first < run.stop and row.last >= run.start for run in shown)]
    lanes: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: (row.first, row.part_index is not None)):
        lane = next((lane for lane in lanes if lane[-1].last < row.first), None)
        if lane is not None:
            lane.append(row)
        elif len(lanes) < LANES:
            lanes.append([row])
    return {event: tuple(_lane(lane, event) for lane in lanes) for run in shown for event in run}


def _lane(rows: Iterable[Row], event: int) -> Lane | None:
    row = next((row for row in rows if row.first <= event <= row.last), None)
    return Lane(row.kind, row.part_index is not None, event == row.first, event == row.last) if row else None
