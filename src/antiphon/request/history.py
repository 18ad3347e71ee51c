"""Reads a history: items in, the messages of its turns out. One pass, whatever the items are.

Most items have the form in which they usually come: a dict with its text, its call or its output. Their messages are
made here, at once. Any other item is read by the reader of its type, and its entries go to the same turns: it costs
more, and makes no other item cost more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from .arguments import INPUT, quoted, read_object
from .content import REFUSAL, ChatPart, Odd
from .entries import Entry, Thought
from .items import CHAT
from .names import ToolKind
from .turns import UNTHOUGHT, Turns

# Of an item: a key that is missing, a value of another type, arguments that are no object. The readers see to it.
_UNUSUAL = (LookupError, TypeError, AttributeError, ValueError, RecursionError, msgspec.DecodeError)
Find: TypeAlias = Callable[[ToolKind, Any], str]


class Dialect(msgspec.Struct, frozen=True):
    """What differs between those who read a history.

    `read`: the entries of any item, by its number. `content`, `output`: the content of a message, by its role, and
    what a tool gave back, each a list of parts; they raise one of the errors of lookup where it is not as usual.
    `functions`, `customs`: a tool that is called by its name, or by `(namespace, name)`, -> its chat name, as far as it
    was found; `find` finds one by its kind and that key, keeps it there, and raises KeyError for what is no name. No
    `customs`: custom tools are not usual. `roles`: those, beside the assistant, whose messages stay where they stand.
    `refusals`: what was refused is text. `fits`: whether the backend takes a call id; None where it takes any.
    """

    read: Callable[[Any, int], Iterable[Entry]]
    content: Callable[[str, Any], Any]
    output: Callable[[Any], tuple[Any, Sequence[ChatPart]]]
    functions: Mapping[Any, str]
    customs: Mapping[Any, str] | None
    find: Find
    roles: frozenset[str]
    refusals: bool
    fits: Callable[[str], Any] | None = None


def read_history(items: Sequence[Any], turns: Turns, dialect: Dialect) -> None:
    """Give all items to `turns`.

    One function with few calls, since it runs once for each item of each request of an agent: a call for each item
    would cost a third of what all else does. Nothing is changed before it is known that an item is usual.
    """
    made, slots, pending, noted = turns.made, turns.slots, turns.pending, turns.begun
    thinks, ride, signs, null, ours = turns.thinks, turns.ride, turns.signs, turns.null, turns.ids.made
    functions, customs, roles, fits = dialect.functions, dialect.customs, dialect.roles, dialect.fits
    note, decode, is_own = turns.report.noted.append, read_object, CHAT.isdisjoint
    open: Any = None  # the assistant message that takes text and calls
    last: Any = None  # it, also after outputs came
    calls: Any = None  # of the open message
    # The call that waits, where there is one alone, as in most turns: its id, its tool message, which is in `slots` only
    # once another waits too, and its chat name.
    lone: Any = None
    slot: Any = None
    name: Any = ""
    asked: Any = None  # what the user said last
    picky = fits is not None  # not every id may stay
    item: Any
    for place, item in enumerate(items):
        try:
            kind = item.get("type")
            if kind is None or kind == "message":
                role, said = item["role"], item["content"]
                if role == "assistant":
                    refused = False
                    if said.__class__ is list:
                        part = said[0]
                        if len(said) > 1:
                            said = dialect.content(role, said)
                        elif part["type"] == "output_text":
                            said = part["text"]
                        elif part["type"] == "refusal" and dialect.refusals:
                            said, refused = part["refusal"], True
                    if said.__class__ is not str or not said or said.isspace():
                        raise Odd
                    if not is_own(item):
                        raise Odd
                    if open is not None:
                        turns.speak(open, said)
                    elif slots or lone is not None:
                        raise Odd
                    else:
                        open = last = {"role": "assistant", "content": said}
                        calls = None
                        made.append(open)
                        if noted is not None:
                            noted.append((open, place))
                    if pending:
                        turns.attach(open)
                    if refused:
                        note((place, REFUSAL))
                    continue
                if (role == "user" or role in roles) and lone is None and not slots and not pending:
                    if said.__class__ is not str:
                        said = dialect.content(role, said)
                    open = calls = None
                    message = {"role": role, "content": said}
                    made.append(message)
                    if role == "user":
                        asked = message
                    continue
            elif kind == "function_call" or kind == "custom_tool_call":
                call_id, name = item["call_id"], item["name"]
                if "namespace" in item:
                    name = (item["namespace"], name)
                if kind == "function_call":
                    arguments = item["arguments"]
                    if arguments.__class__ is not str:
                        raise Odd
                    decode(arguments)
                    name = functions.get(name) or dialect.find("function", name)
                elif customs is not None:
                    arguments = f'{{"{INPUT}": {quoted(item["input"])}}}'
                    name = customs.get(name) or dialect.find("custom", name)
                else:
                    raise Odd
                if call_id.__class__ is not str or not call_id:
                    raise Odd
                if picky and (call_id in ours or (fits and not fits(call_id))):
                    raise Odd
                call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
                answer = {"role": "tool", "tool_call_id": call_id, "content": place}
                if calls is not None:
                    if lone is not None:
                        if call_id == lone:
                            raise Odd
                        slots[lone] = slot
                        lone = None
                    elif call_id in slots:
                        raise Odd
                    calls.append(call)
                    slots[call_id] = answer
                elif slots or lone is not None:
                    raise Odd
                else:
                    calls = [call]
                    lone, slot = call_id, answer
                    if open is not None:
                        open["tool_calls"] = calls
                    else:
                        open = last = {"role": "assistant", "content": null, "tool_calls": calls}
                        made.append(open)
                        if noted is not None:
                            noted.append((open, place))
                made.append(answer)
                if pending and open is not None:
                    turns.attach(open)
                if ride is not None and (signs or "provider_data" in item):
                    turns.open = open
                    ride(turns, call, item.get("provider_data"), place)
                continue
            elif kind == "function_call_output" or (kind == "custom_tool_call_output" and customs is not None):
                call_id, output = item["call_id"], item["output"]
                shown: Any = None
                if output.__class__ is not str:
                    output, shown = dialect.output(output)
                if lone is not None and call_id == lone:
                    lone = None
                else:
                    slot = slots.pop(call_id)
                    name = ""
                slot["content"] = output
                if pending and open is not None:
                    turns.attach(open)
                open = calls = None
                if shown:
                    turns.show(slot, shown, place, name or turns.name_of(slot, last))
                continue
            elif kind == "reasoning":
                if thinks:
                    pending.append(Thought(item, place))
                else:
                    note((place, UNTHOUGHT))
                continue
        except _UNUSUAL:
            pass
        if lone is not None:
            slots[lone] = slot
            lone = None
        turns.open, turns.last, turns.asked = open, last, asked
        for entry in dialect.read(item, place):
            turns.feed(entry)
        open, last, asked = turns.open, turns.last, turns.asked
        calls = open.get("tool_calls") if open is not None else None
        picky = picky or bool(ours)
    if lone is not None:
        slots[lone] = slot
    turns.open, turns.last, turns.asked = open, last, asked
