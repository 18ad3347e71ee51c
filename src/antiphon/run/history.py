"""Nested history: what was said before a handoff, folded into messages for the next agent.

A folded message is a preamble, a start marker, one numbered line an item, and an end marker. A line is
`<role>: <text>`, or the item's JSON where that would lose something. Folding what is folded unpacks it first, so that
nesting does not grow. Nothing is hidden by it: whatever the agent before saw, the next one sees.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from antiphon.stream.chunk import plain

from .handoffs import HandoffHistoryMapper, HandoffInputData, OwnedItem
from .items import RunItem, ToolApprovalItem
from .reading import Json, is_dict

PREAMBLE = "So far, the user and the agent before you have said and done this:"
NOTHING = "(nothing yet)"
DEFAULT_WRAPPERS = ("<CONVERSATION HISTORY>", "</CONVERSATION HISTORY>")
# items that are folded: alone they would be orphans
FOLDED = frozenset({"function_call", "function_call_output", "reasoning", "program", "program_output"})
# keys that no line tells: what a provider keeps in an item for itself, and of reasoning all but its summary
PRIVATE = frozenset({"provider_data"})
UNTOLD = {"reasoning": PRIVATE | {"content", "encrypted_content"}}
NUMBER = re.compile(r"\d+\. ")
# what a line without JSON looks like. A role and a name have no character that the line needs for itself.
SPOKEN = re.compile(r"(?P<role>[a-z_]+)(?: \((?P<name>[^()\n:]+)\))?: (?P<content>.*)", re.DOTALL)

_wrappers = DEFAULT_WRAPPERS


def set_conversation_history_wrappers(*, start: str | None = None, end: str | None = None) -> None:
    """Say what stands around a folded history, in the whole process; None leaves a marker as it is."""
    global _wrappers
    _wrappers = (start if start is not None else _wrappers[0], end if end is not None else _wrappers[1])


def reset_conversation_history_wrappers() -> None:
    """Go back to the default markers."""
    global _wrappers
    _wrappers = DEFAULT_WRAPPERS


def get_conversation_history_wrappers() -> tuple[str, str]:
    """Return the markers, start and end."""
    return _wrappers


def default_handoff_history_mapper(transcript: list[Any]) -> list[Any]:
    """Return the transcript folded into one assistant message."""
    start, end = _wrappers
    lines = [f"{number}. {line_of(item)}" for number, item in enumerate(transcript, 1)] or [NOTHING]
    return [{"role": "assistant", "content": "\n".join((PREAMBLE, start, *lines, end))}]


def nest_handoff_history(
    handoff_input_data: HandoffInputData, *, history_mapper: HandoffHistoryMapper | None = None
) -> HandoffInputData:
    """Return `handoff_input_data` with all that went before folded into its `input_history`.

    The next agent reads that alone: there are no other items for it, and `new_items` stay for the session. A mapper
    gets the flat transcript, and what it returns is used as it is; without one, runs of items are folded, and messages
    that the model gave in this turn stay as they are between them. `input_items` are not read.
    """
    flat = _unfolded(handoff_input_data.input_history)
    pieces = [_piece(item, before=True) for item in _sent(handoff_input_data.pre_handoff_items)]
    pieces += [_piece(item, before=False) for item in _sent(handoff_input_data.new_items)]
    if history_mapper is None:
        history, owned = _folded(flat, pieces)
    else:
        history, owned = deepcopy(history_mapper([*flat, *(piece.flat for piece in pieces)])), []
    return handoff_input_data.clone(
        input_history=tuple(history), pre_handoff_items=(), input_items=(), nested_history_owned=tuple(owned)
    )


@dataclass(frozen=True, slots=True)
class _Piece:
    """A run item, as the model's input, and whether it stays as it is."""

    item: RunItem
    flat: Json
    stays: bool


def _sent(items: Sequence[RunItem]) -> list[RunItem]:
    return [item for item in items if not isinstance(item, ToolApprovalItem)]


def _piece(item: RunItem, *, before: bool) -> _Piece:
    """Return an item of before the turn, where what the model said is folded, or of the turn, where that stays."""
    flat = deepcopy(item.to_input_item())
    return _Piece(item, flat, not _is_folded(flat) and not (before and flat.get("role") == "assistant"))


def _is_folded(flat: Json) -> bool:
    caller = flat.get("caller")
    by_program = is_dict(caller) and caller.get("type") == "program"
    return by_program or flat.get("type") in FOLDED


def _folded(flat: list[Json], pieces: Iterable[_Piece]) -> tuple[list[Json], list[OwnedItem]]:
    """Return the history, and which of its items are run items as they were."""
    history: list[Json] = []
    owned: list[OwnedItem] = []
    pending = list(flat)
    for piece in pieces:
        if not piece.stays:
            pending.append(piece.flat)
            continue
        if pending or not history:
            history.extend(default_handoff_history_mapper(pending))
            pending = []
        history.append(piece.flat)
        owned.append(OwnedItem(piece.item, piece.flat))
    if pending or not history:
        history.extend(default_handoff_history_mapper(pending))
    return history, owned


# --- lines ---------------------------------------------------------------------------------------------------------


def line_of(item: Any) -> str:
    """Return an item on one line; `_item` is the way back."""
    given: Json = plain(item)
    left_out = UNTOLD.get(str(given.get("type")), PRIVATE)
    held: Json = {key: value for key, value in given.items() if key not in left_out}
    content, name = held.get("content"), held.get("name")
    if isinstance(held.get("role"), str) and (content is None or isinstance(content, str)):
        spoken = f"{held['role']} ({name}): {content or ''}" if name else f"{held['role']}: {content or ''}"
        if "\n" not in spoken and "\r" not in spoken and _item(spoken) == _as_spoken(held):
            return spoken
    return json.dumps(held, ensure_ascii=False, default=str)


def _as_spoken(held: Json) -> Json:
    """Return what of a message a spoken line keeps."""
    named = {"name": held["name"]} if held.get("name") else {}
    return {"role": held["role"], **named, "content": held.get("content") or ""}


def _item(line: str) -> Json | None:
    """Return the item that a line stands for; None for a line that stands for none."""
    if line.startswith("{"):
        try:
            read: Any = json.loads(line)
        except ValueError:
            return None
        return read if is_dict(read) else None
    said = SPOKEN.fullmatch(line)
    return None if said is None else {key: value for key, value in said.groupdict().items() if value is not None}


def _unfolded(history: str | tuple[Any, ...]) -> list[Json]:
    if isinstance(history, str):
        return [{"role": "user", "content": history}]
    return [one for item in history for one in _inner(plain(item))]


def _inner(item: Json) -> list[Json]:
    """Return the items that a folded message holds, or the item itself."""
    content = item.get("content")
    start, end = f"{PREAMBLE}\n{_wrappers[0]}\n", f"\n{_wrappers[1]}"
    if item.get("role") != "assistant" or not isinstance(content, str):
        return [item]
    if not content.startswith(start) or not content.endswith(end):
        return [item]
    lines = content[len(start) : -len(end)].split("\n")
    if lines == [NOTHING]:
        return []
    found = [_item(line[match.end() :]) if (match := NUMBER.match(line)) else None for line in lines]
    whole = [one for one in found if one is not None]
    return whole if len(whole) == len(found) else [item]  # what cannot be read whole stays as it is
