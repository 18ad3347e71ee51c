"""`Assembler`: deltas in, events out. It owns the open item, the order of items, and the ending.

Items are sequential. While a call is open whose arguments are not complete, all else is held back, in order. A call
that is not yet settled (it has no name, or its arguments have not begun) is not announced; content goes before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Literal, TypeAlias

from antiphon.ids import Ids

from .calls import Call, Calls
from .chunk import PlainDelta
from .deltas import (
    AnnotationDelta,
    CallDelta,
    Delta,
    ErrorDelta,
    FinishDelta,
    Json,
    LogprobsDelta,
    MediaDelta,
    ReasoningDelta,
    RefusalDelta,
    SourceDelta,
    TextDelta,
    UsageDelta,
)
from .details import for_call, is_signed
from .emit import Emitter, Writer
from .endings import Ending, Seen, ending, failed
from .faults import SERVER_ERROR, Fault
from .items import (
    CALLS,
    REASONING,
    Item,
    OpenCall,
    OpenItem,
    OpenMessage,
    OpenPart,
    OpenReasoning,
    PartKind,
    ReasoningForm,
    Status,
)
from .snapshot import TIERS, Snapshots

Flow: TypeAlias = tuple[type[PlainDelta] | None, Callable[[Any], Any]]  # takes deltas of that type; returns an event
NOTHING: Flow = (None, lambda delta: None)
Content: TypeAlias = TextDelta | RefusalDelta | ReasoningDelta | AnnotationDelta | LogprobsDelta
Warn: TypeAlias = Callable[[str, str], None]


class Phase(Enum):
    """Where a response is in its life."""

    STREAMING = "streaming"  # no finish_reason came
    FINISHED = "finished"  # one came; content after it still counts
    ENDED = "ended"  # the terminal event was sent


# phase -> delta -> the phase after it. A delta that is not in it is an error of the caller.
TRANSITIONS: dict[Phase, dict[type[Delta], Phase]] = {
    Phase.STREAMING: {
        TextDelta: Phase.STREAMING,
        RefusalDelta: Phase.STREAMING,
        ReasoningDelta: Phase.STREAMING,
        CallDelta: Phase.STREAMING,
        AnnotationDelta: Phase.STREAMING,
        LogprobsDelta: Phase.STREAMING,
        MediaDelta: Phase.STREAMING,
        SourceDelta: Phase.STREAMING,
        UsageDelta: Phase.STREAMING,
        FinishDelta: Phase.FINISHED,
        ErrorDelta: Phase.ENDED,
    },
    Phase.FINISHED: {
        TextDelta: Phase.FINISHED,
        RefusalDelta: Phase.FINISHED,
        ReasoningDelta: Phase.FINISHED,
        CallDelta: Phase.FINISHED,
        AnnotationDelta: Phase.FINISHED,
        LogprobsDelta: Phase.FINISHED,
        MediaDelta: Phase.FINISHED,
        SourceDelta: Phase.FINISHED,
        UsageDelta: Phase.FINISHED,
        FinishDelta: Phase.FINISHED,
        ErrorDelta: Phase.ENDED,
    },
    Phase.ENDED: {},
}
STRICT_CODES = frozenset({"other-choice", "media"})  # warnings that `strict` turns into faults


class Assembler:
    """Makes one response. Events go to `emitter`; `clock` gives seconds since the epoch."""

    def __init__(
        self,
        emitter: Emitter,
        ids: Ids,
        request: Any,
        clock: Callable[[], int],
        reasoning: Literal["summary", "text"],
        warn: Warn,
    ) -> None:
        self.phase = Phase.STREAMING
        self.seen = Seen()
        self.faults: list[Fault] = []  # remembered; the response fails at its end
        self.ending: Ending | None = None
        self.final: dict[str, Any] | None = None  # the terminal snapshot
        self.keep_raw_usage = False  # the provider's own words for usage go to provider_data
        self._emitter = emitter
        self._ids = ids
        self._clock = clock
        self._warn = warn
        self._form: ReasoningForm = REASONING[reasoning]
        self._snapshots = Snapshots(request, ids.make("resp_"), clock())
        self._headed = False  # created and in_progress were sent
        self._status: Status = "completed"  # of the items that close now
        self._open: OpenItem | None = None
        self.bare = 0  # plain deltas that had to be looked at
        self._takes, self._flow = NOTHING  # what plain deltas may go straight to
        self._items: list[Item] = []
        self._calls = Calls()
        self._unsettled: deque[Call] = deque()  # in order of appearance
        self._held: deque[Content | Call] = deque()  # behind the open call, in order
        self._blank: dict[type[Content], list[Any]] = {}  # white space of a kind that is not open
        self._late: list[Json] = []  # signed pieces of reasoning, for an item after the open one
        self._signed: dict[str, list[Json]] = {}  # signed pieces that have an id: it may be that of a call to come
        self._annotations: list[Json] = []  # waiting for a text part
        self._annotated: list[Json] = []  # all that came: equal ones count once
        self._logprobs: list[Json] = []  # waiting for text of their part
        self._usage: dict[str, Any] | None = None
        self._data: dict[str, Any] = {}

    def feed(self, deltas: Sequence[Delta]) -> None:
        """Take the deltas of one chunk. Raises KeyError where the response has ended."""
        self._take(deltas)
        self._takes, self._flow = self._flowing()

    def feed_plain(self, delta: PlainDelta) -> list[Any]:
        """Return the events of a chunk that holds one bare delta: most chunks go straight to what is open."""
        if type(delta) is self._takes:
            event = self._flow(delta)
            if event is not None:
                return [event]
        self.bare += 1
        self.feed((TextDelta(delta) if isinstance(delta, str) else delta,))
        return self._emitter.take()

    def _flowing(self) -> Flow:
        """Return what plain deltas may go straight to: something open, with nothing waiting beside it."""
        match self._open:
            case _ if self.seen.usage_last or self.phase is Phase.ENDED:
                return NOTHING
            case OpenMessage(part=OpenPart(kind="output_text", write=write)):
                return NOTHING if self._logprobs or self._annotations else (str, write)
            case OpenReasoning(write=write) if write is not None:
                return ReasoningDelta, lambda delta: write(delta.text)
            case OpenCall(call=call, write=write) if call is self._calls.latest and not self._held:
                return (
                    (CallDelta, lambda delta: _to_call(call, write, delta))
                    if call.said == len(call.pieces) > 0
                    else NOTHING
                )
            case _:
                return NOTHING

    def _take(self, deltas: Sequence[Delta]) -> None:
        self.seen.chunks = True
        visible = _is_visible(deltas)
        if visible:
            self.seen.output, self.seen.usage_last = True, False
        begun, new = self._attribute(deltas)
        for call in begun:
            self._advance(call)
        for delta in deltas:
            self.phase = TRANSITIONS[self.phase][type(delta)]
            match delta:
                case TextDelta() | RefusalDelta() | ReasoningDelta() | AnnotationDelta() | LogprobsDelta():
                    self._say_or_hold(delta)
                case UsageDelta():
                    self._note_usage(delta, visible)
                case FinishDelta(reason):
                    self.seen.finished(reason)
                case SourceDelta(model, data):
                    if not self._headed:
                        self._snapshots.suggest_model(model)
                    self._data.update(data)
                case MediaDelta(kind, data):
                    self._warn("media", f"{kind} in a delta has no place in the event stream: kept in provider_data")
                    self._data.setdefault("media", []).append({"kind": kind, "data": data})
                case ErrorDelta(code, message):
                    self._announce(new)
                    self._end(failed(Fault(code, message), *self.faults))
                    return
                case CallDelta():
                    pass  # attributed above
        self._announce(new)

    def end(self, *, done: bool, optional: bool, raised: Fault | None) -> None:
        """End the response: close what is open, and send the terminal event.

        `done`: `[DONE]` was seen. `optional`: the provider may leave out the finish_reason. `raised`: what the source
        raised.
        """
        self._end(ending(self.seen, done=done, optional=optional, raised=raised, faults=self.faults))

    # --- calls -------------------------------------------------------------------------------------------------

    def _attribute(self, deltas: Sequence[Delta]) -> tuple[list[Call], list[Call]]:
        """Give each fragment to its call. Return the calls that began before this chunk, and those that are new."""
        begun: list[Call] = []
        new: list[Call] = []
        for delta in deltas:
            if isinstance(delta, CallDelta):
                call, is_new = self._calls.attribute(delta)
                if call is None:
                    continue
                self._absorb(call, delta)
                if is_new:
                    new.append(call)
                elif call not in new:
                    begun.append(call)
        return begun, new

    def _absorb(self, call: Call, fragment: CallDelta) -> None:
        if fragment.id and fragment.id not in call.ids:
            if not call.call_id and not self._calls.is_taken(fragment.id, call):
                call.call_id = fragment.id
            call.ids.add(fragment.id)
            if fragment.id in self._signed:
                call.data.setdefault("reasoning_details", []).extend(self._signed.pop(fragment.id))
        if fragment.name and not call.take_name(fragment.name):
            self._warn(
                "name-ignored", f"tool call {call.number} is {call.name!r}; later name {fragment.name!r} ignored"
            )
        if fragment.extra:
            call.data.update(fragment.extra)
            if call.closed:
                self._data.setdefault("calls", {})[call.call_id] = call.data
        if fragment.arguments and not call.repeats(fragment.arguments):
            self._absorb_arguments(call, fragment.arguments)

    def _absorb_arguments(self, call: Call, arguments: str) -> None:
        if not call.closed:
            call.take(arguments)
        elif not arguments.isspace() and arguments != call.arguments():
            said = f"tool call {call.number} ({call.name}) got more arguments after it was closed"
            self._warn("closed-call", said)
            self.faults.append(Fault(SERVER_ERROR, said))

    def _advance(self, call: Call) -> None:
        """Say what a call has got: its arguments if it is open, itself if it is its turn."""
        if isinstance(self._open, OpenCall) and self._open.call is call:
            self._open.flush()
            if self._held:
                self._drain()
        elif self._unsettled:
            self._settle()

    def _announce(self, new: list[Call]) -> None:
        if new:
            self._unsettled.extend(new)
            self._settle()

    def _settle(self) -> None:
        """Let the calls that are settled have their turn. Calls that came after one that is not wait for it."""
        while self._unsettled and self._unsettled[0].is_settled:
            self._say_or_hold(self._unsettled.popleft())

    # --- order -------------------------------------------------------------------------------------------------

    def _is_inside(self) -> bool:
        """Return whether a call is open whose arguments are not complete."""
        return isinstance(self._open, OpenCall) and not self._open.call.has_whole_input()

    def _say_or_hold(self, one: Content | Call) -> None:
        if self._held or self._is_inside():
            self._held.append(one)
            self._drain()
        else:
            self._say(one)

    def _drain(self) -> None:
        while self._held and not self._is_inside():
            self._say(self._held.popleft())

    def _say(self, one: Content | Call) -> None:
        match one:
            case TextDelta():
                self._say_text(one)
            case Call():
                self._open_call(one)
            case ReasoningDelta():
                self._say_reasoning(one)
            case RefusalDelta():
                self._say_refusal(one)
            case AnnotationDelta(annotations):
                self._annotate([one for one in annotations if one not in self._annotated])
            case LogprobsDelta("text", logprobs):
                self._logprobs.extend(logprobs)
            case LogprobsDelta(kind, logprobs):
                self._data.setdefault("logprobs", {}).setdefault(kind, []).extend(logprobs)

    # --- items -------------------------------------------------------------------------------------------------

    def _say_text(self, delta: TextDelta) -> None:
        part = self._part("output_text")
        if part is None:
            if not delta.text.strip():
                self._wait(delta)
                return
            part, blank = self._open_part("output_text", TextDelta)
            delta = TextDelta(
                "".join(one.text for one in blank) + delta.text,
                (*(entry for one in blank for entry in one.logprobs), *delta.logprobs),
            )
        part.extend(delta.text, (*self._logprobs, *delta.logprobs))
        self._logprobs.clear()
        if self._annotations:
            waiting, self._annotations = self._annotations, []
            self._annotate(waiting)

    def _say_refusal(self, delta: RefusalDelta) -> None:
        part = self._part("refusal")
        text = delta.text
        if part is None:
            if not text.strip():
                self._wait(delta)
                return
            part, blank = self._open_part("refusal", RefusalDelta)
            text = "".join(one.text for one in blank) + text
        part.extend(text)

    def _say_reasoning(self, delta: ReasoningDelta) -> None:
        text, details = delta.text, self._details(delta)
        if isinstance(self._open, OpenReasoning):
            self._open.extend(text, details)
        elif text.strip():
            opened, blank = self._open_reasoning()
            held = [piece for one in blank for piece in one.details]
            opened.extend("".join(one.text for one in blank) + text, [*held, *details])
        elif not any(is_signed(piece) for piece in details):
            if text:
                self._wait(ReasoningDelta(text, tuple(details)))
        elif self._open is None:
            self._open_reasoning()[0].extend("", details)
        else:
            self._late.extend(details)

    def _details(self, delta: ReasoningDelta) -> list[Json]:
        """Return the details of `delta` but for those that name a call: they ride on that call."""
        kept = list(delta.details)
        for piece in kept:
            if isinstance(piece.get("id"), str) and is_signed(piece):
                self._signed.setdefault(piece["id"], []).append(piece)
        for call in self._calls.all if kept else ():
            mine, others = for_call(kept, call.ids)
            if mine and not call.closed:
                call.data.setdefault("reasoning_details", []).extend(mine)
                self._signed.clear()
                kept = others
        return kept

    def _annotate(self, annotations: list[Json]) -> None:
        part = self._part("output_text")
        for one in annotations:
            if one not in self._annotated:
                self._annotated.append(one)
            if part is None:
                self._annotations.append(one)
            else:
                part.annotate(one)

    def _wait(self, delta: TextDelta | RefusalDelta | ReasoningDelta) -> None:
        """Keep white space of a kind that is not open: it opens nothing and closes nothing."""
        self._blank.setdefault(type(delta), []).append(delta)

    def _part(self, kind: PartKind) -> OpenPart | None:
        """Return the open part of that kind, or None."""
        part = self._open.part if isinstance(self._open, OpenMessage) else None
        return part if part is not None and part.kind == kind else None

    def _open_part(self, kind: PartKind, of: type[Content]) -> tuple[OpenPart, list[Any]]:
        """Return a new part, in the open message or a new one, and the white space that waited for it."""
        blank = self._blank.pop(of, [])
        self._leave_text()
        if isinstance(self._open, OpenMessage):
            return self._open.open_part(kind), blank
        self._make_room()
        self._open = OpenMessage(self._emitter, len(self._items), self._ids.make("msg_"))
        return self._open.open_part(kind), blank

    def _open_reasoning(self) -> tuple[OpenReasoning, list[Any]]:
        blank = self._blank.pop(ReasoningDelta, [])
        self._make_room()
        self._open = OpenReasoning(self._emitter, len(self._items), self._ids.make("rs_"), self._form)
        return self._open, blank

    def _open_call(self, call: Call) -> None:
        self._make_room()
        call.call_id = call.call_id or self._ids.make("call_")
        prefix = CALLS[call.kind].prefix
        self._open = OpenCall(self._emitter, len(self._items), self._ids.make(prefix), call)
        self._open.flush()

    def _make_room(self) -> None:
        """Close the open item, before another opens. White space that waits for another kind is dropped."""
        self._close()
        self._head()
        self._blank.clear()

    def _close(self) -> None:
        if self._open is None:
            return
        self._leave_text()
        self._items.append(self._open.close(self._status))
        self._open = None
        if self._late:
            late, self._late = self._late, []
            item = OpenReasoning(self._emitter, len(self._items), self._ids.make("rs_"), self._form)
            item.extend("", late)
            self._items.append(item.close(self._status))

    def _leave_text(self) -> None:
        """The open text part, if there is one, gets no more: log probabilities that wait for its text are dropped."""
        if self._logprobs and self._part("output_text") is not None:
            self._warn("logprobs-dropped", "log probabilities came without text of their part")
            self._logprobs.clear()

    # --- the response ------------------------------------------------------------------------------------------

    def _note_usage(self, delta: UsageDelta, visible: bool) -> None:
        self._usage = delta.usage
        self.seen.usage_last = not visible and (self.seen.output or not delta.choices)
        if self.keep_raw_usage:
            self._data["usage"] = delta.raw

    def _head(self) -> None:
        if not self._headed:
            self._headed = True
            for type in ("response.created", "response.in_progress"):
                self._emitter.emit(type, response=self._snapshots.make("in_progress"))

    def _end(self, how: Ending) -> None:
        how = self._with_nameless(how)
        self._status = how.status
        while self._held:
            self._say(self._held.popleft())
        for call in self._unsettled:
            if call.name:
                self._open_call(call)
        self._close()
        self._leave_over()
        self._head()
        if how.fault is not None:
            error = {"type": how.fault.code, **how.fault._asdict(), "param": None}
            self._emitter.emit("error", **how.fault._asdict(), param=None, error=error)
        self.phase, self.ending, self.final = Phase.ENDED, how, self._final(how)
        self._emitter.emit(f"response.{how.terminal}", response=self.final)

    def _with_nameless(self, how: Ending) -> Ending:
        """A call that never got a name fails a success; any other ending names it."""
        nameless = [call for call in self._unsettled if not call.name]
        if not nameless:
            return how
        faults = [Fault(SERVER_ERROR, f"tool call {call.number} never got a name") for call in nameless]
        for fault in faults:
            self._warn("nameless-call", fault.message)
        if how.terminal == "incomplete":
            return how
        return failed(*([how.fault] if how.fault else []), *faults)

    def _leave_over(self) -> None:
        """Keep what found no place, or say that it is dropped."""
        if self._annotations:
            self._data["annotations"] = self._annotations
        if self._logprobs:
            self._warn("logprobs-dropped", "log probabilities came without text of their part")

    def _final(self, how: Ending) -> dict[str, Any]:
        fields: dict[str, Any] = {"output": self._items, "usage": self._usage}
        if how.terminal == "completed":
            fields["completed_at"] = self._clock()
        if how.reason is not None:
            fields["incomplete_details"] = {"reason": how.reason}
        if how.fault is not None:
            fields["error"] = how.fault._asdict()
        if self._data.get("service_tier") in TIERS:
            fields["service_tier"] = self._data.pop("service_tier")
        if self._data:
            fields["provider_data"] = self._data
        return self._snapshots.make(how.terminal, **fields)


def _to_call(call: Call, write: Writer, delta: CallDelta) -> Any:
    """Return the event of a bare fragment for the open call; None where it is another's, or may be a repetition."""
    if delta.index != call.index or len(delta.arguments) == call.size:
        return None
    return write(delta.arguments)


def _is_visible(deltas: Sequence[Delta]) -> bool:
    """Return whether something in `deltas` can be seen: text, refusal, reasoning, or a call."""
    for delta in deltas:
        match delta:
            case TextDelta(text) | RefusalDelta(text):
                if text.strip():
                    return True
            case ReasoningDelta(text, details):
                if text.strip() or any(is_signed(piece) for piece in details):
                    return True
            case CallDelta():
                return True
            case _:
                pass
    return False
