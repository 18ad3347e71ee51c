"""Puts entries into turns: what the assistant said and called for between two words of others, and what came of it.

Chat wants all of a turn in one assistant message, and the outputs of its calls right after it, in the order of the
calls. A Responses history may have them in any order, may lack an output, and may have one that nothing called for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, TypeAlias

from .content import ToolContent
from .items import Answer, Call, Entry, Message, Output, Thought
from .report import BadRequest, Report

# Of a call without output, and of an output without call: mended, an error, or left as they are.
Orphans: TypeAlias = Literal["repair", "error", "keep"]

INTERRUPTED = "[no output: the call was interrupted]"


@dataclass(slots=True, eq=False)
class Turn:
    """One assistant message to be, with the outputs of its calls."""

    path: str  # of its first entry
    thoughts: list[Thought] = field(default_factory=list[Thought])
    answers: list[Answer] = field(default_factory=list[Answer])
    calls: list[Call] = field(default_factory=list[Call])
    outputs: dict[Call, Output] = field(default_factory=dict[Call, Output])

    @property
    def waits(self) -> bool:
        """Whether a call of it has no output yet."""
        return len(self.outputs) < len(self.calls)


Block: TypeAlias = Message | Turn


class Phase(Enum):
    """Where the turn is to which the assistant's entries go."""

    NONE = "there is none: another spoke"
    SAYING = "no output came: it takes text, reasoning and calls"
    WAITING = "some outputs came: it takes text still"
    ANSWERED = "all outputs came: the next entry begins another"


class Action(Enum):
    """What becomes of an entry of the assistant."""

    BEGIN = "it begins a turn"
    JOIN = "it joins the turn"
    FOLD = "it joins the turn, though outputs came in between"
    HOLD = "it waits for what it leads to"


# phase -> entry -> what becomes of it
ACTIONS: dict[Phase, dict[type[Answer | Thought | Call], Action]] = {
    Phase.NONE: {Answer: Action.BEGIN, Thought: Action.BEGIN, Call: Action.BEGIN},
    Phase.SAYING: {Answer: Action.JOIN, Thought: Action.JOIN, Call: Action.JOIN},
    Phase.WAITING: {Answer: Action.FOLD, Thought: Action.HOLD, Call: Action.BEGIN},
    Phase.ANSWERED: {Answer: Action.BEGIN, Thought: Action.BEGIN, Call: Action.BEGIN},
}


class Arrangement:
    """Takes entries in order. `blocks()` returns the history as messages and turns. Time grows with the entries."""

    def __init__(self, report: Report, orphans: Orphans, *, hoist: bool) -> None:
        self.leading: list[Message] = []  # of the system and the developer, where they are hoisted
        self._report = report
        self._orphans: Orphans = orphans
        self._hoist = hoist
        self._blocks: list[Block] = []
        self._turn: Turn | None = None
        self._held: list[Thought] = []
        self._waiting: dict[str, list[tuple[Turn, deque[Call]]]] = {}  # call id -> calls without output, by turn

    def feed(self, entry: Entry) -> None:
        """Take the next entry."""
        match entry:
            case Message(role=role) if role != "user" and self._hoist:
                self._lead(entry)
            case Message():
                self._drop_held()
                self._turn = None
                self._blocks.append(entry)
            case Output():
                self._answer(entry)
            case Answer() | Thought() | Call():
                self._say(entry)

    def blocks(self) -> list[Block]:
        """Return the history. Called once, at its end: calls without output get one, or are an error."""
        self._drop_held()
        kept: list[Block] = []
        for block in self._blocks:
            if isinstance(block, Turn):
                self._repair(block)
                if not block.answers and not block.calls and not block.outputs:
                    self._drop(block.thoughts)
                    continue
            kept.append(block)
        return kept

    @property
    def _phase(self) -> Phase:
        turn = self._turn
        if turn is None:
            return Phase.NONE
        if not turn.outputs:
            return Phase.SAYING
        return Phase.WAITING if turn.waits else Phase.ANSWERED

    def _say(self, entry: Answer | Thought | Call) -> None:
        action = ACTIONS[self._phase][type(entry)]
        if action is Action.HOLD and isinstance(entry, Thought):
            self._held.append(entry)
            return
        turn = self._turn
        if action is Action.BEGIN or turn is None:
            turn = self._turn = Turn(entry.path)
            self._blocks.append(turn)
        elif action is Action.FOLD:
            self._report.changed(entry.path, "text before an output", "text of the message with the call", _PAIRED)
        turn.thoughts.extend(self._held)
        self._held.clear()
        self._join(turn, entry)

    def _join(self, turn: Turn, entry: Answer | Thought | Call) -> None:
        match entry:
            case Answer():
                turn.answers.append(entry)
            case Thought():
                turn.thoughts.append(entry)
            case Call(call_id=call_id):
                turn.calls.append(entry)
                waiting = self._waiting.setdefault(call_id, [])
                if not waiting or waiting[-1][0] is not turn:
                    waiting.append((turn, deque()))
                waiting[-1][1].append(entry)

    def _answer(self, output: Output) -> None:
        """Give the output to the first call of its id in the latest turn that waits for one."""
        waiting = self._waiting.get(output.call_id) if output.call_id else None
        if not waiting:
            self._orphan(output)
            return
        turn, calls = waiting[-1]
        turn.outputs[calls.popleft()] = output
        if not calls:
            waiting.pop()
        if turn is not self._turn:
            self._report.changed(output.path, "an output after other messages", "an output after its call", _PAIRED)

    def _orphan(self, output: Output) -> None:
        why = f"no call before it waits for an output with the call_id {output.call_id!r}"
        if self._orphans == "error":
            raise BadRequest(f"{output.path}.call_id", why)
        if self._orphans == "keep":
            self._turn = None
            self._blocks.append(Turn(output.path, outputs={Call("", "", "", {}, output.path): output}))
            return
        self._report.dropped(output.path, "an output without call", why)

    def _repair(self, turn: Turn) -> None:
        """Give an output to each call that has none."""
        for call in turn.calls if turn.waits and self._orphans != "keep" else ():
            if call in turn.outputs:
                continue
            if self._orphans == "error":
                raise BadRequest(call.path, f"the call with the call_id {call.call_id!r} has no output")
            self._report.add("made", call.path, "a call without output", "an output that says so", _PAIRED)
            turn.outputs[call] = Output(call.call_id, ToolContent(INTERRUPTED), call.path)

    def _lead(self, message: Message) -> None:
        self.leading.append(message)
        if self._blocks:
            self._report.changed(message.path, f"a {message.role} message", "text of the first message", _FIRST)

    def _drop_held(self) -> None:
        self._drop(self._held)
        self._held.clear()

    def _drop(self, thoughts: Iterable[Thought]) -> None:
        for thought in thoughts:
            self._report.ignored(thought.path, "reasoning", "nothing that it led to comes after it")


_PAIRED = "backends want outputs right after their calls"
_FIRST = "the backend takes one system message, the first"
