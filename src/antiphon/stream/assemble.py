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
from .details import is_signed
from .emit import Emitter
from .endings import Ending, Seen, ending, failed
from .faults import SERVER_ERROR, Fault
from .items import REASONING, OpenCall
from .output import NOTHING, Content, Flow, Output
from .snapshot import TIERS, Snapshots

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
        self._clock = clock
        self._warn = warn
        self._snapshots = Snapshots(request, ids.make("resp_"), clock())
        self._headed = False  # created and in_progress were sent
        self.flow = NOTHING  # what usual chunks may go straight to, until deltas are fed again
        self._calls = Calls()
        self._unsettled: deque[Call] = deque()  # in order of appearance
        self._held: deque[Content | Call] = deque()  # behind the open call, in order
        self._signed: dict[str, list[Json]] = {}  # signed pieces that have an id: it may be that of a call to come
        self._usage: dict[str, Any] | None = None
        self._data: dict[str, Any] = {}  # provider_data of the response
        self._output = Output(emitter, ids, REASONING[reasoning], warn, self._head, self._calls.make_id, self._data)

    def feed(self, deltas: Sequence[Delta]) -> None:
        """Take the deltas of one chunk. Raises KeyError where the response has ended."""
        self._take(deltas)
        self.flow = self._flowing()

    def _flowing(self) -> Flow:
        """Return what usual chunks may go straight to, while nothing stands in their way and no finish_reason came."""
        open_ = self._output.open
        if self.seen.usage_last or self._held or self.phase is not Phase.STREAMING:
            return NOTHING
        if isinstance(open_, OpenCall) and open_.call is not self._calls.latest:
            return NOTHING
        return self._output.flow()

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
                case TextDelta() | RefusalDelta() | AnnotationDelta() | LogprobsDelta():
                    self._say_or_hold(delta)
                case ReasoningDelta(text, details):
                    self._say_reasoning(text, details)
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
        begun: dict[Call, None] = {}
        new: dict[Call, None] = {}
        for delta in deltas:
            if isinstance(delta, CallDelta):
                call, is_new = self._calls.attribute(delta)
                if call is None:
                    continue
                self._absorb(call, delta)
                if is_new:
                    new[call] = None
                elif call not in new:
                    begun[call] = None
        return [*begun], [*new]

    def _absorb(self, call: Call, fragment: CallDelta) -> None:
        if fragment.id:
            self._calls.take_id(call, fragment.id)
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
        elif not arguments.isspace() and not call.holds(arguments):
            said = f"tool call {call.number} ({call.name}) got more arguments after it was closed"
            self._warn("closed-call", said)
            self.faults.append(Fault(SERVER_ERROR, said))

    def _advance(self, call: Call) -> None:
        """Say what a call has got: its arguments if it is open, itself if it is its turn."""
        opened = self._output.open
        if isinstance(opened, OpenCall) and opened.call is call:
            opened.flush()
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

    def _say_reasoning(self, text: str, details: Sequence[Json]) -> None:
        """Say reasoning, but for the pieces that name a call: they ride on that call, which may still be to come."""
        kept: list[Json] = []
        for piece in details:
            id = piece.get("id")
            call = self._calls.call_by(id)
            if call is not None:
                call.data.setdefault("reasoning_details", []).append(piece)
                continue
            kept.append(piece)
            if isinstance(id, str) and is_signed(piece):
                self._signed.setdefault(id, []).append(piece)
        if text or kept:
            self._say_or_hold(ReasoningDelta(text, tuple(kept)))

    # --- order -------------------------------------------------------------------------------------------------

    def _say_or_hold(self, one: Content | Call) -> None:
        if self._held or self._output.is_inside_call:
            self._held.append(one)
            self._drain()
        else:
            self._output.say(one)

    def _drain(self) -> None:
        while self._held and not self._output.is_inside_call:
            self._output.say(self._held.popleft())

    # --- the response ------------------------------------------------------------------------------------------

    def _note_usage(self, delta: UsageDelta, visible: bool) -> None:
        self._usage = delta.usage
        self.seen.usage_last = not visible and (self.seen.output or not delta.choices)
        if self.keep_raw_usage:
            self._data["usage"] = delta.raw

    def _head(self) -> None:
        if not self._headed:
            self._headed = True
            self._emitter.emit_each(
                ("response.created", "response.in_progress"), response=self._snapshots.make("in_progress")
            )

    def _end(self, how: Ending) -> None:
        how = self._with_nameless(how)
        self._output.status = how.status
        while self._held:
            self._output.say(self._held.popleft())
        for call in self._unsettled:
            if call.name:
                self._output.say(call)
        self._output.finish()
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

    def _final(self, how: Ending) -> dict[str, Any]:
        fields: dict[str, Any] = {"output": self._output.items, "usage": self._usage}
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
