"""Plain histories, quickly: most are dicts in order, with text alone, and the outputs of a turn's calls right after it.

`plain_messages` gives for such a history what `Messages` would, at a fraction of the cost, and None for any other: it
knows no policy. Whatever needs one (a part that is no text, a call without output, text between a call and its output,
an id or a role that the backend does not take, signed reasoning) is left to the modules that do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from antiphon.profile import Profile

from .arguments import read_object
from .report import Change

Json = dict[str, Any]

MOST_CALLS = 100  # of one message
NO_CALLS: list[Json] = []  # never changed
UNPLAIN = frozenset({"namespace", "provider_data"})  # of a call
INPUT, OUTPUT = ("input_text", "text"), ("output_text",)  # types of the parts that are text
TEXT_FIELDS = {
    "reasoning_content": "reasoning_content",
    "reasoning": "reasoning",
}  # of replay, where text alone goes back
NOT_TAKEN = "profile {!r} takes no reasoning back"
NOT_NOW = "the backend takes back that of the current tool calls alone"
_FAULTS = (msgspec.DecodeError, ValueError, RecursionError, TypeError, KeyError, IndexError)


@dataclass(frozen=True, slots=True)
class Plain:
    """A plain history as messages. `names`: the functions that are called, by the names that the items have."""

    messages: list[Json]
    names: set[str]
    report: list[Change]


def text_alone(role: str, content: Any) -> str | None:
    """Return the text of a content that is a list of parts; None where it holds anything else."""
    return _text(content, OUTPUT if role == "assistant" else INPUT)


def plain_messages(
    items: Sequence[Any], profile: Profile, *, mend: bool = True, read: Callable[[str, Any], Any] = text_alone
) -> Plain | None:
    """Return a plain history as messages; None where it is not plain.

    `mend`: a call without output is not plain; else it stays as it is. `read` gives the content of a message that is
    no string; None is not plain.
    """
    if profile.call_id_pattern is not None or profile.thought_signatures or profile.reasoning_replay_always:
        return None
    try:
        return _plain(items, profile, mend, read)
    except _FAULTS:  # a key that is missing, arguments that are no object: not plain
        return None


def _plain(items: Sequence[Any], profile: Profile, mend: bool, read: Callable[[str, Any], Any]) -> Plain | None:
    """As `plain_messages`. One function with few calls: it runs once for each item of each request of an agent."""
    made: list[Json] = []
    say, hold = made.append, read_object
    names: set[str] = set()
    leads = profile.developer_role and not profile.single_leading_system
    null = None if profile.null_content_with_calls else ""
    thinking = _Thinking(items, profile)
    loose = False  # reasoning came, and nothing yet that it led to
    message: Json | None = None  # of the turn that goes on
    calls = NO_CALLS  # of that message
    given = 0  # how many of them have their output, in order
    item: Json
    for place, item in enumerate(items):
        if type(item) is not dict:
            return None
        kind = item.get("type")
        if kind is None or kind == "message":
            role: Any = item["role"]
            said: Any = item["content"]
            if role == "assistant":
                if type(said) is list and len(said) == 1 and said[0]["type"] == "output_text":  # pyright: ignore[reportUnknownArgumentType]
                    said = said[0]["text"]  # pyright: ignore[reportUnknownVariableType]
                if type(said) is not str:  # pyright: ignore[reportUnknownArgumentType]
                    said = read(role, said)  # pyright: ignore[reportUnknownArgumentType]
                if not said or said.isspace() or "tool_calls" in item or "refusal" in item:
                    return None
                if message is None or given:
                    if given < len(calls):
                        return None
                    message = {"role": "assistant", "content": said}
                    calls, given = NO_CALLS, 0
                    say(message)
                else:
                    before = message["content"]
                    message["content"] = f"{before}\n{said}" if before else said
                if loose:
                    loose = False
                    if thinking.taken and not thinking.put(message):
                        return None
                continue
            if type(said) is not str:
                said = read(role, said)
            if loose or said is None or (given < len(calls) and mend):
                return None
            if role != "user" and not (leads and role in ("system", "developer")):
                return None
            say({"role": role, "content": said})
            message, calls, given = None, NO_CALLS, 0
        elif kind == "function_call":
            call_id, name, arguments = item["call_id"], item["name"], item["arguments"] or "{}"
            if message is None or given:
                if given < len(calls) and mend:
                    return None
                calls, given = [], 0
                message = {"role": "assistant", "content": null, "tool_calls": calls}
                say(message)
            elif not calls:
                message["tool_calls"] = calls = []
            elif _has(calls, call_id):
                return None
            if loose:
                loose = False
                if thinking.taken and not thinking.put(message):
                    return None
            if not (type(call_id) is type(name) is str and call_id and name) or not UNPLAIN.isdisjoint(item):
                return None
            hold(arguments)
            names.add(name)
            calls.append({"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}})
        elif kind == "function_call_output":
            call_id, output = item["call_id"], item["output"]
            if calls[given]["id"] != call_id or type(output) is not str:
                return None
            given += 1
            say({"role": "tool", "tool_call_id": call_id, "content": output})
        elif kind == "reasoning":
            if 0 < given < len(calls) or item.get("provider_data") or item.get("encrypted_content"):
                return None
            thinking.places.append(place)
            loose = True
        else:
            return None
    if loose or (given < len(calls) and mend):
        return None
    return Plain(made, names, thinking.report())


def _has(calls: list[Json], call_id: str) -> bool:
    """Return whether a call of that id is among them, or there are too many to look through for each that comes."""
    return len(calls) > MOST_CALLS or any(call["id"] == call_id for call in calls)


def _text(parts: Any, kinds: Sequence[str]) -> str | None:
    """Return the text of a list of parts; None where it holds anything else."""
    if type(parts) is not list:
        return None
    listed: list[Any] = parts  # pyright: ignore[reportUnknownVariableType]
    texts: list[str] = []
    for part in listed:
        text: Any = part["text"]
        if part["type"] not in kinds or type(text) is not str or "prompt_cache_breakpoint" in part:
            return None
        if len(listed) == 1:
            return text
        texts.append(text)
    return "\n".join(text for text in texts if text)


class _Thinking:
    """What becomes of reasoning that nobody signed: it is left out, or its text goes back in a field."""

    def __init__(self, items: Sequence[Any], profile: Profile) -> None:
        self.taken = profile.reasoning_replay != "none"
        self.places: list[int] = []  # of the items that were not put anywhere
        self._items = items
        self._left: list[int] = []
        self._field = TEXT_FIELDS.get(profile.reasoning_replay)
        self._profile = profile.name
        self._begin: int | None = None

    def put(self, message: Json) -> bool:
        """Put the reasoning that came into the message it led to. Return whether that was plain."""
        places, self.places = self.places, []
        if places[0] < self._first():
            self._left += places
            return True
        texts = [_thought(self._items[place]) for place in places]
        if self._field is None or not all(texts):
            return False
        before = message.get(self._field)
        message[self._field] = "\n".join([before, *texts] if before else texts)
        return True

    def report(self) -> list[Change]:
        """Return what was left out."""
        why = NOT_NOW if self.taken else NOT_TAKEN.format(self._profile)
        return [Change("ignored", f"input[{place}]", "reasoning", None, why) for place in (*self._left, *self.places)]

    def _first(self) -> int:
        """Return the place from which on reasoning goes back: after the last user message, if a call is made there."""
        if self._begin is None:
            self._begin = len(self._items)
            at_work = False
            for place in range(len(self._items) - 1, -1, -1):
                item = self._items[place]
                at_work = at_work or item.get("type") == "function_call"
                if item.get("role") == "user" or place == 0:
                    self._begin = place if at_work else len(self._items)
                    break
        return self._begin


def _thought(item: Json) -> str:
    """Return the text of a reasoning item; "" where it has none, or is not plain."""
    parts: Any = item.get("content") or item.get("summary")
    texts: list[str] = [part["text"] for part in parts] if type(parts) is list else []  # pyright: ignore[reportUnknownVariableType]
    return "\n".join(texts) if all(texts) else ""
