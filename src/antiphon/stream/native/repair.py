"""`Repairer`: facts said in order, one item after another, as canonical events.

An item speaks when text, a call's arguments or its end come. While one is open another that speaks closes it, if it is
a message or reasoning; a call whose arguments are not complete, and a hosted item, hold all else back until they are
done, or the stream ends. What comes for a closed item becomes an item of its own: nothing is lost, nothing taken back.
An item is closed only when something else comes, since the end of the response decides its status.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from antiphon.errors import SourceError
from antiphon.ids import Ids, IdsChoice, choose_ids
from antiphon.stream.chunk import entries, fields, word
from antiphon.stream.emit import DictEmitter
from antiphon.stream.endings import Ending, Terminal, failed
from antiphon.stream.faults import SERVER_ERROR, Fault, fault_of_exception
from antiphon.stream.items import Status

from .facts import (
    ITSELF,
    Added,
    Annotated,
    Aside,
    Began,
    Broke,
    Done,
    Ended,
    Fact,
    Head,
    ItemFact,
    Json,
    Odd,
    Said,
    Spot,
    Whole,
)
from .items import Call, Hosted, OpenItem, Talk, open_item
from .read import CALLS, NativeReader, fault_in, parts_of, whole_part
from .response import Responses

CUT = Fault(SERVER_ERROR, "the stream ended without a terminal event")
REASONS = {"max_output_tokens": "max_output_tokens", "content_filter": "content_filter"}


class State(Enum):
    """Where an item is in its life."""

    WAITING = "waiting"  # not announced by us
    OPEN = "open"
    CLOSED = "closed"


@dataclass(slots=True, eq=False)
class Track:
    """An item of the server's, as far as it has come."""

    value: Json
    state: State = State.WAITING
    held: list[ItemFact] = field(default_factory=list[ItemFact])  # what waits until it is its turn
    said: dict[Spot, list[str]] = field(default_factory=dict[Spot, list[str]])
    open: OpenItem | None = None
    end: Json | None = None  # the item as the server has it at its end, once that came

    @property
    def family(self) -> str:
        return str(self.value["type"])

    @property
    def has_name(self) -> bool:
        """Whether it can be announced."""
        return self.family not in CALLS or bool(word(self.value.get("name")))

    def rest(self, spot: Spot, text: str) -> str | None:
        """Return what of a whole text was not said yet; None where something else was said."""
        said = "".join(self.said.get(spot, ()))
        return text[len(said) :] if text.startswith(said) else None


class Repairer:
    """Native events in, in order; canonical events out, as dicts. `finish`, or `fail`, is called once, at the end.

    `request`: the create parameters, which the snapshots repeat where the server does not. `ids`, `created_at`: for
    what the server leaves out. `final`: the response at its end. `error`: what made it fail. `warnings`: what was odd.
    """

    def __init__(self, *, request: Any = None, ids: IdsChoice = "random", created_at: int | None = None) -> None:
        self.final: Json | None = None
        self.error: BaseException | None = None
        self.warnings: list[str] = []
        self._emitter = DictEmitter()
        self._ids: Ids = choose_ids(ids)
        clock: Callable[[], int] = (lambda: int(time.time())) if created_at is None else (lambda: created_at)
        self._responses = Responses(request, self._ids, clock)
        self._reader = NativeReader()
        self._heads: set[str] = set()
        self._tracks: dict[int, Track] = {}
        self._turns: deque[Track] = deque()  # that have spoken and wait for their turn
        self._current: Track | None = None
        self._items: list[Json] = []
        self._used: set[str] = set()  # ids of items
        self._cut = False  # an item was incomplete: so are all after it
        self._fault: Fault | None = None

    def feed(self, event: Any) -> list[Json]:
        """Return the events that `event` causes; none once the response has ended."""
        if self.final is None:
            for fact in self._reader.feed(event):
                self._take(fact)
        return self._emitter.take()

    def finish(self) -> list[Json]:
        """Return the last events, where the stream ended; none if the terminal event was there."""
        if self.final is None:
            self._end("failed", {}, self._fault or CUT)
        return self._emitter.take()

    def fail(self, error: BaseException) -> list[Json]:
        """Return the last events, where the source raised `error`."""
        if self.final is None:
            self._end("failed", {}, self._fault or fault_of_exception(error))
            self.error = error
        return self._emitter.take()

    def _take(self, fact: Fact) -> None:
        match fact:
            case Began(head, response):
                self._begin(head, response)
            case Added(item, value):
                self._add(item, value)
            case Said(item) | Whole(item) | Annotated(item) | Aside(item) | Done(item):
                self._about(item, fact)
            case Broke(fault):
                self._fault = fault
            case Ended(terminal, response):
                self._end(terminal, response, self._fault)
            case Odd(said):
                self._warn(said)

    # --- the head ----------------------------------------------------------------------------------------------

    def _begin(self, head: Head, response: Json) -> None:
        """Say a head once, and never after an item."""
        if head in self._heads or "response.in_progress" in self._heads:
            return
        self._responses.begin(response)
        if head != "response.created" and "response.created" not in self._heads:
            self._begin("response.created", {})
        self._heads.add(head)
        queued = head == "response.queued" or response.get("status") == "queued"
        self._emitter.emit(head, response=self._responses.head("queued" if queued else "in_progress"))

    def _head(self) -> None:
        self._begin("response.in_progress", {})

    # --- items -------------------------------------------------------------------------------------------------

    def _add(self, item: int, value: Json) -> None:
        track = self._tracks[item] = Track(value)
        self._leave_done()
        if self._current is None and not self._turns and track.has_name and track.family != "message":
            self._open(track)

    def _about(self, item: int, fact: ItemFact) -> None:
        track = self._tracks[item]
        if track.state is State.CLOSED:
            track = self._tracks[item] = self._after(track, fact)
            if track.state is State.CLOSED:
                return
        if track.state is State.OPEN:
            self._say(track, fact)
        else:
            track.held.append(fact)
            if isinstance(fact, Done):
                track.value = {**fact.value, **{key: one for key, one in track.value.items() if one}}
            if track.has_name and track not in self._turns:
                self._turns.append(track)
        self._advance()

    def _advance(self) -> None:
        """Give those that wait their turn, in order, while what is open makes way."""
        while self._turns and self._makes_way():
            self._close()
            track = self._turns.popleft()
            self._open(track)
            for fact in track.held:
                self._say(track, fact)
            track.held.clear()

    def _makes_way(self) -> bool:
        current = self._current
        if current is None or current.end is not None:
            return True
        match current.open:
            case Talk():
                return True
            case Call() as call:
                return call.is_whole()
            case _:
                return False

    def _leave_done(self) -> None:
        """Close the open item if the server is done with it."""
        if self._current is not None and self._current.end is not None:
            self._close()

    def _open(self, track: Track) -> None:
        self._head()
        track.state = State.OPEN
        track.open = open_item(self._emitter, len(self._items), self._ids, self._with_own_ids(track))
        self._used.add(track.open.item_id)
        if isinstance(track.open, Call):
            self._used.add(track.open.call_id)
        self._current = track

    def _with_own_ids(self, track: Track) -> Json:
        """Return an item without the ids that another has already: it gets new ones."""
        own = ("id", "call_id") if track.family in CALLS else ("id",)
        return {key: one for key, one in track.value.items() if key not in own or word(one) not in self._used}

    def _close(self) -> None:
        track, self._current = self._current, None
        if track is None or track.open is None:
            return
        track.state = State.CLOSED
        self._items.append(track.open.close(self._status(track), track.end or {}))

    def _status(self, track: Track) -> Status:
        if (track.end or {}).get("status") == "incomplete":
            self._cut = True
        return "incomplete" if self._cut else "completed"

    def _after(self, track: Track, fact: ItemFact) -> Track:
        """Return the item that `fact` is for, where its own is closed: a new one if there is something to say."""
        match fact:
            case Said():
                more = True
            case Whole(spot=spot, text=text):
                more = bool(track.rest(spot, text))
            case Done(value=value):
                more = bool(value.get("encrypted_content")) and not track.value.get("encrypted_content")
                more = more or any(
                    track.rest(spot, _said_in(spot, part)) for spot, part in parts_of(track.family, value)
                )
            case _:
                more = False
        if not more or track.family in CALLS:
            if track.family in CALLS and isinstance(fact, Said) and fact.text.strip():
                self._remember(f"call {track.value.get('name')!r} got more arguments after it was closed")
            return track
        self._warn(f"a {track.family} item goes on after another item began: the rest is an item of its own")
        return Track({"type": track.family}, said=track.said)

    # --- what they say -----------------------------------------------------------------------------------------

    def _say(self, track: Track, fact: ItemFact) -> None:
        match fact:
            case Said(_, spot, text, logprobs):
                self._extend(track, spot, text, logprobs)
            case Whole(_, spot, text):
                self._complete(track, spot, text)
            case Annotated(_, spot, annotation):
                if isinstance(track.open, Talk):
                    track.open.annotate(spot, annotation)
            case Aside(_, event):
                if isinstance(track.open, Hosted):
                    track.open.tell(event)
            case Done(item, value):
                self._finish(track, item, value)

    def _extend(self, track: Track, spot: Spot, text: str, logprobs: tuple[Json, ...] = ()) -> None:
        match track.open:
            case Call() as call if call.is_over(text):
                if not call.repeats(text):
                    self._remember(f"call {track.value.get('name')!r} got more arguments after they were complete")
                return
            case _:
                track.said.setdefault(spot, []).append(text)
        match track.open:
            case Talk() as talk:
                talk.extend(spot, text, logprobs)
            case Call() as call:
                call.extend(text)
            case _:
                pass

    def _complete(self, track: Track, spot: Spot, text: str) -> None:
        """Say what is not said of a whole text."""
        rest = track.rest(spot, text)
        if rest:
            self._extend(track, spot, rest)
        elif rest is None:
            self._warn(f"the text of a {track.family} item at its end is another than the one that was streamed")
        if isinstance(track.open, Talk):
            track.open.leave(spot)

    def _finish(self, track: Track, item: int, value: Json) -> None:
        track.end = value
        if isinstance(track.open, Talk):
            taken: set[Spot] = set()
            for place, part in parts_of(track.family, value):
                spot = track.open.fitting(place, _said_in(place, part), taken)
                taken.add(spot)
                for fact in whole_part(item, spot, part):
                    self._say(track, fact)
                track.open.leave(spot, entries(part.get("logprobs")))
        elif isinstance(track.open, Call):
            text = value.get(CALLS[track.family])
            if text is not None:
                self._complete(track, ITSELF, text if isinstance(text, str) else json.dumps(text))

    # --- the end -----------------------------------------------------------------------------------------------

    def _end(self, terminal: Terminal, response: Json, fault: Fault | None) -> None:
        if fault is None and terminal == "failed":
            fault = fault_in(response) if response.get("error") else _without_error(response)
        how = failed(fault) if fault is not None else Ending(terminal, _reason(response))
        self._drain(how)
        if how.terminal == "completed" and self._cut:
            how = Ending("incomplete", _reason(response))
        self._head()
        if how.fault is not None:
            error = {"type": how.fault.code, **how.fault._asdict(), "param": None}
            self._emitter.emit("error", **how.fault._asdict(), param=None, error=error)
            self.error = SourceError(*how.fault)
        self.final = self._responses.final(how, response, self._items)
        self._emitter.emit(f"response.{how.terminal}", response=self.final)

    def _drain(self, how: Ending) -> None:
        """Say all that waits, and close what is open: as incomplete where the response is, and it was not done."""
        waiting = [one for one in self._tracks.values() if one.state is State.WAITING and one not in self._turns]
        for track in (*self._turns, *(one for one in waiting if one.has_name)):
            self._close_last(how)
            self._open(track)
            for fact in track.held:
                self._say(track, fact)
        self._turns.clear()
        self._close_last(how)

    def _close_last(self, how: Ending) -> None:
        track = self._current
        if track is not None and how.terminal != "completed":
            done = track.end is not None and (how.terminal == "failed" or track.family != "message")
            self._cut = self._cut or not done
        self._close()

    def _remember(self, said: str) -> None:
        self._fault = self._fault or Fault(SERVER_ERROR, said)
        self._warn(said)

    def _warn(self, said: str) -> None:
        if said not in self.warnings and len(self.warnings) < 100:
            self.warnings.append(said)


def _said_in(spot: Spot, part: Json) -> str:
    text = part.get("refusal" if spot.kind == "refusal" else "text")
    return text if isinstance(text, str) else ""


def _reason(response: Json) -> str:
    details: Any = fields(response.get("incomplete_details"))
    return REASONS.get(word(details.get("reason")), "max_output_tokens")


def _without_error(response: Json) -> Fault:
    status = word(response.get("status"))
    said = "the response was cancelled" if status == "cancelled" else "the response failed, and no error says why"
    return Fault(SERVER_ERROR, said)
