"""Reads a history: items in, the messages of its turns out. One pass, whatever the items are.

Most items have the form in which they usually come: a dict with its text, its call or its output. Their messages are
made here, at once. Any other item is read by the reader of its type, and its entries go to the same turns: it costs
more, and makes no other item cost more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from .arguments import input_text, read_object
from .content import REFUSAL, ChatPart, Odd
from .items import Entry, Thought
from .turns import UNTHOUGHT, Turns

NONE = object()  # no id
# Of an item: a key that is missing, a value of another type, arguments that are no object. The readers see to it.
_UNUSUAL = (LookupError, TypeError, AttributeError, ValueError, RecursionError, msgspec.DecodeError)
CALLS = frozenset({"function_call", "custom_tool_call"})
OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})


class Dialect(msgspec.Struct, frozen=True):
    """What differs between those who read a history.

    `read`: the entries of any item, by its number. `content`, `output`: the content of a message, by its role, and
    what a tool gave back, each a list of parts; they raise one of the errors of lookup where it is not as usual.
    `functions`, `customs`: a tool that is called by its name, or by `(namespace, name)`, -> its chat name; what is not
    in them is unusual. `roles`: those, beside the assistant, whose messages stay where they stand. `refusals`: what
    was refused is text. `fits`: whether the backend takes a call id; None where it takes any.
    """

    read: Callable[[Any, int], Iterable[Entry]]
    content: Callable[[str, Any], Any]
    output: Callable[[Any], tuple[Any, Sequence[ChatPart]]]
    functions: Mapping[Any, str]
    customs: Mapping[Any, str]
    roles: frozenset[str]
    refusals: bool
    fits: Callable[[str], Any] | None = None


def read_history(items: Sequence[Any], turns: Turns, dialect: Dialect) -> None:
    """Give all items to `turns`.

    One function with few calls, since it runs once for each item of each request of an agent: a call for each item
    would cost a third of what all else does.
    """
    functions, customs, roles, fits = dialect.functions, dialect.customs, dialect.roles, dialect.fits
    read_content, read_output, refusals = dialect.content, dialect.output, dialect.refusals
    thinks, ride, signs, null, ours = turns.thinks, turns.ride, turns.signs, turns.null, turns.ids.made
    made, slots, pending, noted = turns.made, turns.slots, turns.pending, turns.begun
    say, note, decode = made.append, turns.report.noted.append, read_object
    open: Any = None  # the assistant message that takes text and calls
    last: Any = None  # it, also after outputs came
    calls: Any = None  # of the open message
    lone: Any = NONE  # the id of the one call of the open message, which has no tool message yet
    since: int = 0  # where that call stands
    refused = False
    item: Any
    for place, item in enumerate(items):
        try:
            kind = item.get("type")
            if kind in CALLS:
                call_id, name = item["call_id"], item["name"]
                if "namespace" in item:
                    name = (item["namespace"], name)
                if kind == "function_call":
                    arguments = item["arguments"]
                    decode(arguments)
                    name = functions[name]
                else:
                    arguments, name = input_text(item["input"]), customs[name]
                call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
                if call_id.__class__ is str and call_id and call_id not in ours and (fits is None or fits(call_id)):
                    if open is None:
                        if slots:
                            raise Odd
                        calls = [call]
                        open = last = {"role": "assistant", "content": null, "tool_calls": calls}
                        lone, since = call_id, place
                        say(open)
                        if noted is not None:
                            noted.append((open, place))
                    elif calls is not None:
                        if call_id == lone or call_id in slots:
                            raise Odd
                        if lone is not NONE:
                            slots[lone] = {"role": "tool", "tool_call_id": lone, "content": since}
                            lone = NONE
                        calls.append(call)
                        slots[call_id] = {"role": "tool", "tool_call_id": call_id, "content": place}
                    else:
                        open["tool_calls"] = calls = [call]
                        lone, since = call_id, place
                    if pending:
                        turns.attach(open)
                    if ride is not None and (signs or "provider_data" in item):
                        turns.open = open
                        ride(turns, call, item.get("provider_data"), place)
                    continue
            elif kind in OUTPUTS:
                call_id, output = item["call_id"], item["output"]
                shown: Any = None
                if output.__class__ is not str:
                    output, shown = read_output(output)
                if call_id == lone:
                    if pending and open is not None:
                        turns.attach(open)
                    slot = {"role": "tool", "tool_call_id": call_id, "content": output}
                    say(slot)
                    open, lone = None, NONE
                else:
                    slot = slots[call_id]
                    if open is not None:
                        if pending:
                            turns.attach(open)
                        made.extend(slots.values())
                        open = None
                    slot["content"] = output
                    del slots[call_id]
                if shown:
                    turns.show(slot, shown, place, last)
                continue
            elif kind == "message" or kind is None:
                role, said = item["role"], item["content"]
                if role == "assistant":
                    if said.__class__ is list:
                        part = said[0]
                        if len(said) > 1:
                            said = read_content(role, said)
                        elif part["type"] == "output_text":
                            said = part["text"]
                        elif part["type"] == "refusal" and refusals:
                            said, refused = part["refusal"], True
                    if (
                        said.__class__ is str
                        and said
                        and not said.isspace()
                        and not ("tool_calls" in item or "refusal" in item)
                        and (open is not None or not slots)
                    ):
                        if open is None:
                            open = last = {"role": "assistant", "content": said}
                            calls = None
                            say(open)
                            if noted is not None:
                                noted.append((open, place))
                        else:
                            before = open["content"]
                            open["content"] = f"{before}\n{said}" if before else said
                        if pending:
                            turns.attach(open)
                        if refused:
                            refused = False
                            note((place, REFUSAL))
                        continue
                elif role in roles and lone is NONE and not slots and not pending:
                    if said.__class__ is not str:
                        said = read_content(role, said)
                    open = None
                    message = {"role": role, "content": said}
                    say(message)
                    if role == "user":
                        turns.asked = message
                    continue
            elif kind == "reasoning":
                if thinks:
                    pending.append(Thought(item, place))
                else:
                    note((place, UNTHOUGHT))
                continue
        except _UNUSUAL:
            pass
        if lone is not NONE:
            slots[lone] = {"role": "tool", "tool_call_id": lone, "content": since}
        turns.open, turns.last = open, last
        for entry in dialect.read(item, place):
            turns.feed(entry)
        open, last = turns.open, turns.last
        calls = open.get("tool_calls") if open is not None else None
        lone, refused = NONE, False
    if lone is not NONE:
        slots[lone] = {"role": "tool", "tool_call_id": lone, "content": since}
    turns.open, turns.last = open, last
