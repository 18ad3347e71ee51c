"""The turns of a history as chat messages: what the assistant said and called for, and what came of it.

Chat wants all of a turn in one assistant message, and the outputs of its calls right after it, in the order of the
calls. A Responses history may have them in any order, may lack an output, and may have one that nothing called for. So
each call gets its tool message at once, and that is filled when its output comes, wherever that stands.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Literal, TypeAlias

import msgspec

from .callids import CallIds
from .content import ChatPart, joined
from .entries import Answer, Call, Entry, Message, Output, Thought
from .read import Json
from .report import BadRequest, Place, Remark, Report, path_of

# Of a call without output, and of an output without call: mended, an error, or left as they are.
Orphans: TypeAlias = Literal["repair", "error", "keep"]
ChatMessage: TypeAlias = dict[str, Any]
Key: TypeAlias = str | tuple[str, int]  # the client's id of a call; of a further call of that id, with a number
Ride: TypeAlias = "Callable[[Turns, dict[str, Any], Any, Place], None]"  # puts on a call its `provider_data`

UNTHOUGHT = Remark("ignored", "reasoning", None, "it goes back to no backend with this profile")
ELSEWHERE = Remark("changed", "an output that is not text", "a user message", "the backend takes text alone from tools")
INTERRUPTED = "[no output: the call was interrupted]"
SHOWN = "[see the next user message]"


class Phase(Enum):
    """Where the turn is to which the assistant's entries go."""

    NONE = "there is none, or all its outputs came: the next entry begins another"
    SAYING = "no output came: it takes text, reasoning and calls"
    WAITING = "some outputs came: it takes text still"


class Action(Enum):
    """What becomes of an entry of the assistant."""

    BEGIN = "it begins a turn"
    JOIN = "it joins the turn"
    FOLD = "it joins the turn, though outputs came in between"


# phase -> entry -> what becomes of it. Reasoning goes with what comes after it.
ACTIONS: dict[Phase, dict[type[Answer | Call], Action]] = {
    Phase.NONE: {Answer: Action.BEGIN, Call: Action.BEGIN},
    Phase.SAYING: {Answer: Action.JOIN, Call: Action.JOIN},
    Phase.WAITING: {Answer: Action.FOLD, Call: Action.BEGIN},
}


class Reasoned(msgspec.Struct):
    """An assistant message, the reasoning that led to it, and what came beside its calls."""

    message: ChatMessage
    thoughts: list[Thought]
    riding: list[Json] = []


class Turns(msgspec.Struct):
    """Takes entries in order, and makes their messages. `finish()` returns them. Time grows with the entries.

    `null`: the content of a message with calls alone. `hoist`: what the system and the developer say is in `leading`.
    `thinks`: reasoning is kept, in `reasoned`; else it is left out. `ride`: puts on a call what came beside it; None
    where no backend wants it. `signs`: it is asked for each call, also for one beside which nothing came. `begun`: each
    assistant message and where its first item stood; None where nobody asks.

    `history` makes the usual messages itself, and keeps the fields that it names as they would be here.
    """

    report: Report
    ids: CallIds
    orphans: Orphans
    null: str | None = None
    hoist: bool = False
    thinks: bool = False
    ride: Ride | None = None
    signs: bool = False
    begun: list[tuple[ChatMessage, Place]] | None = None

    made: list[ChatMessage] = []
    open: ChatMessage | None = None  # the assistant message that takes text and calls
    last: ChatMessage | None = None  # it, also after outputs came
    slots: dict[Key, ChatMessage] = {}  # tool messages of `last` that wait for their output
    asked: ChatMessage | None = None  # what the user said last
    pending: list[Thought] = []  # reasoning that led to nothing yet
    reasoned: list[Reasoned] = []
    leading: list[Message] = []
    refusing: list[ChatMessage] = []  # messages with a field for what was refused
    _again: dict[str, deque[Key]] = {}  # further calls of an id in `slots`
    # client's id -> by turn, the latest last: tool messages that wait still, with the messages that called
    _late: dict[str, list[deque[tuple[ChatMessage, ChatMessage]]]] = {}
    _blank: list[ChatMessage] = []
    _spoken: list[ChatMessage] = []  # messages whose content is a list of texts still
    _after: list[tuple[ChatMessage, ChatMessage]] = []
    _names: tuple[ChatMessage | None, dict[str, str]] | None = None

    @property
    def phase(self) -> Phase:
        """Where the turn is."""
        if self.open is not None:
            return Phase.SAYING
        return Phase.WAITING if self.slots else Phase.NONE

    def feed(self, entry: Entry) -> None:
        """Take the next entry."""
        match entry:
            case Message(role=role) if role != "user" and self.hoist:
                self._lead(entry)
            case Message(role=role, content=content):
                self._close()
                message = {"role": role, "content": content}
                self.made.append(message)
                self.asked = message if role == "user" else self.asked
            case Output():
                self._answer(entry)
            case Answer():
                self._say(entry)
            case Call():
                self._call(entry)
            case Thought(place=place):
                self.pending.append(entry) if self.thinks else self.report.noted.append((place, UNTHOUGHT))

    def show(self, slot: ChatMessage, parts: list[ChatPart], place: Place, name: str, *, late: bool = False) -> None:
        """Show in a user message what a tool message cannot hold of an output: `parts`, which are put there.

        `name`: what was called. `late`: other messages stand between them already.
        """
        self.report.noted.append((place, ELSEWHERE))
        if not slot["content"]:
            slot["content"] = SHOWN
        parts.insert(0, {"type": "text", "text": f"[output of {name}, call {slot['tool_call_id']}]"})
        before = self.made[-1]
        if late:
            self._after.append((slot, {"role": "user", "content": parts}))
        elif before["role"] == "user":
            before["content"] += parts
        else:
            self.made.append({"role": "user", "content": parts})

    def name_of(self, slot: ChatMessage, message: ChatMessage | None) -> str:
        """Return the name of the call that a tool message answers; `message` holds it. Many calls are looked at once."""
        if self._names is None or self._names[0] is not message:
            calls: list[dict[str, Any]] = message["tool_calls"] if message is not None else []
            self._names = (message, {call["id"]: call["function"]["name"] for call in calls})
        return self._names[1].get(slot["tool_call_id"], "a tool")

    def attach(self, message: ChatMessage) -> None:
        """Keep the reasoning that came with the message that it led to."""
        if self.reasoned and self.reasoned[-1].message is message:
            self.reasoned[-1].thoughts.extend(self.pending)
        else:
            self.reasoned.append(Reasoned(message, self.pending[:]))
        self.pending.clear()

    def beside(self, message: ChatMessage, data: Json) -> None:
        """Keep what came beside a call with the message that holds the call."""
        if not self.reasoned or self.reasoned[-1].message is not message:
            self.reasoned.append(Reasoned(message, []))
        self.reasoned[-1].riding.append(data)

    def finish(self) -> list[ChatMessage]:
        """Return the messages. Called once: calls without output get one, or are an error."""
        self._close()
        for message in self._spoken:
            message["content"] = "\n".join(message["content"])
        for message in self._blank:
            message["content"] = message["content"] or (self.null if message.get("tool_calls") else "")
        if self._late:
            self._mend([slot for groups in self._late.values() for group in groups for slot, _ in group])
        if self._after:
            self.made[:] = _inserted(self.made, self._after)
        return self.made

    def speak(self, message: ChatMessage, text: str) -> None:
        """Put text that is not empty after what the message says. Texts are joined once, at the end."""
        before = message["content"]
        if before.__class__ is list:
            before.append(text)
        elif before:
            message["content"] = [before, text]
            self._spoken.append(message)
        else:
            message["content"] = text

    # --- the assistant ---------------------------------------------------------------------------------------------

    def _say(self, entry: Answer) -> None:
        message = self._taking(entry)
        if entry.text:
            self.speak(message, entry.text)
        if entry.refusal:
            self.refusing.append(message)
            message["refusal"] = joined([message.get("refusal"), entry.refusal])
        if not message["content"]:
            self._blank.append(message)

    def _call(self, entry: Call) -> None:
        message = self._taking(entry)
        calls: list[dict[str, Any]] = message.setdefault("tool_calls", [])
        keeps = self.orphans == "keep"
        chat_id = entry.call_id if keeps else self.ids.give(entry.call_id, path_of(entry.place), message)
        call = {"id": chat_id, "type": "function", "function": {"name": entry.name, "arguments": entry.arguments}}
        calls.append(call)
        key: Key = entry.call_id
        if not key or key in self.slots:
            key = (entry.call_id, len(calls))
            self._again.setdefault(entry.call_id, deque()).append(key)
        self.slots[key] = slot = {"role": "tool", "tool_call_id": chat_id, "content": entry.place}
        self.made.append(slot)
        if self.ride is not None:
            self.ride(self, call, entry.data, entry.place)

    def _taking(self, entry: Answer | Call) -> ChatMessage:
        """Return the message that takes an entry of the assistant."""
        action = ACTIONS[self.phase][type(entry)]
        message = self.open if action is Action.JOIN else self.last
        if action is Action.BEGIN or message is None:
            self._leave()
            message = self.open = self.last = {"role": "assistant", "content": self.null}
            self.made.append(message)
            if self.begun is not None:
                self.begun.append((message, entry.place))
        elif action is Action.FOLD:
            path = path_of(entry.place)
            self.report.changed(path, "text before an output", "text of the message with the call", _PAIRED)
        if self.pending:
            self.attach(message)
        return message

    def _close(self) -> None:
        """End the turn: another speaks. Its calls have their tool messages, whatever comes of them."""
        if self.open is not None:
            self._lay(self.open)
        for thought in self.pending:
            self.report.ignored(thought.path, "reasoning", "nothing that it led to comes after it")
        self.pending.clear()
        self._leave()

    def _lay(self, message: ChatMessage) -> None:
        """Put the tool messages after the calls: no more of them can come."""
        if self.pending:
            self.attach(message)
        self.open = None

    def _leave(self) -> None:
        """Keep the tool messages of the turn that have no output yet: it may come later."""
        if not self.slots:
            self.open = self.last = None
            return
        groups: dict[str, deque[tuple[ChatMessage, ChatMessage]]] = {}
        for key, slot in self.slots.items():
            assert self.last is not None  # it holds the calls
            call_id = key[0] if isinstance(key, tuple) else key
            groups.setdefault(call_id, deque()).append((slot, self.last))
        for call_id, group in groups.items():
            self._late.setdefault(call_id, []).append(group)
        self.slots.clear()
        self._again.clear()
        self.open = self.last = None

    # --- outputs ---------------------------------------------------------------------------------------------------

    def _answer(self, output: Output) -> None:
        """Give the output to the first call of its id in the latest turn that waits for one; without id, likewise."""
        key: Key | None = output.call_id
        if key not in self.slots:
            again = self._again.get(output.call_id)
            key = again.popleft() if again else None
        if key is not None:
            if self.open is not None:
                self._lay(self.open)
            self._fill(self.slots.pop(key), output, self.last)
            return
        groups = self._late.get(output.call_id)
        if not groups:
            self._orphan(output)
            return
        slot, message = groups[-1].popleft()
        if not groups[-1]:
            groups.pop()
        path = path_of(output.place)
        self.report.changed(path, "an output after other messages", "an output after its call", _PAIRED)
        self._fill(slot, output, message, late=True)

    def _fill(self, slot: ChatMessage, output: Output, message: ChatMessage | None, *, late: bool = False) -> None:
        slot["content"] = output.content
        if output.shown:
            self.show(slot, [*output.shown], output.place, self.name_of(slot, message), late=late)

    def _orphan(self, output: Output) -> None:
        path, why = path_of(output.place), f"no call before it waits for an output with the call_id {output.call_id!r}"
        if self.orphans == "error":
            raise BadRequest(f"{path}.call_id", why)
        if self.orphans == "keep":
            self._close()
            self.made.append({"role": "tool", "tool_call_id": output.call_id, "content": output.content})
            return
        self.report.dropped(path, "an output without call", why)

    def _mend(self, slots: list[ChatMessage]) -> None:
        """Give an output to each call that has none; where they are kept, its tool message goes."""
        if self.orphans == "keep":
            gone = set(map(id, slots))
            self.made[:] = [message for message in self.made if id(message) not in gone] if gone else self.made
            return
        for slot in slots:
            path = path_of(slot["content"])
            if self.orphans == "error":
                raise BadRequest(path, f"the call with the id {slot['tool_call_id']!r} has no output")
            self.report.add("made", path, "a call without output", "an output that says so", _PAIRED)
            slot["content"] = INTERRUPTED

    # --- the system ------------------------------------------------------------------------------------------------

    def _lead(self, message: Message) -> None:
        self.leading.append(message)
        if self.made or self.pending:
            path = path_of(message.place)
            self.report.changed(path, f"a {message.role} message", "text of the first message", _FIRST)


def _inserted(made: Iterable[ChatMessage], after: Iterable[tuple[ChatMessage, ChatMessage]]) -> Iterable[ChatMessage]:
    """Yield the messages, and user messages that belong to tool messages after all of those that stand together."""
    wanted: Mapping[int, ChatMessage] = {id(slot): message for slot, message in after}
    waiting: list[ChatMessage] = []
    for message in made:
        if message["role"] != "tool":
            yield from waiting
            waiting.clear()
        yield message
        if id(message) in wanted:
            waiting.append(wanted[id(message)])
    yield from waiting


_PAIRED = "backends want outputs right after their calls"
_FIRST = "the backend takes one system message, the first"
