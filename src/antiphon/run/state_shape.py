"""The shape of a `RunState` as JSON data: what must be there, and of which type, before any of it is read.

A state lies in files and databases, where programs and people change it. One that does not fit is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from antiphon.exceptions import UserError
from antiphon.models.interface import ModelResponse
from antiphon.models.usage import Usage

from .approvals import Decision, Made
from .reading import Json

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Names: TypeAlias = list[str]


class _Reference(msgspec.Struct):
    name: str
    identity: str | None = None


class _Item(msgspec.Struct):
    type: str
    raw_item: Json
    agent: _Reference | None = None
    source_agent: _Reference | None = None
    target_agent: _Reference | None = None
    tool_origin: Json | None = None


class _Waiting(_Item):
    nested_call_id: str | None = None
    nested_index: Count = 0


class Context(msgspec.Struct):
    """The context of a run, with the ledger's parts."""

    usage: Usage
    approvals: dict[str, Decision] = {}
    tool_invocations: dict[str, Made] = {}
    agent_tool_approvals: dict[str, dict[str, Decision]] = {}
    context: Any = None
    context_meta: Json = {}
    tool_input: Any = None


class _Named(msgspec.Struct):
    name: str


class _Found(msgspec.Struct):
    guardrail: _Named
    output: Json
    agent: _Reference | None = None


class _Owned(msgspec.Struct):
    index: Count
    input_item: Any


class _Interruptions(msgspec.Struct):
    interruptions: list[_Waiting]


class _Step(msgspec.Struct):
    type: Literal["next_step_interruption", "next_step_open_turn", "next_step_final_output"]
    data: _Interruptions | None = None


class Stored(msgspec.Struct):
    """A state. What it says of items, agents and guardrails is only checked: their own classes read it."""

    current_turn: Count
    max_turns: int | None
    current_agent: _Reference
    original_input: str | list[Json]
    pending_input: list[Json]
    model_responses: list[ModelResponse]
    context: Context
    tool_use_tracker: dict[str, Names]
    input_guardrail_results: list[_Found]
    output_guardrail_results: list[_Found]
    tool_input_guardrail_results: list[_Found]
    tool_output_guardrail_results: list[_Found]
    conversation_id: str | None
    previous_response_id: str | None
    auto_previous_response_id: bool
    conversation_known_item_count: Count | None
    reasoning_item_id_policy: Literal["preserve", "omit"] | None
    generated_items: list[_Item]
    session_items: list[_Item]
    current_turn_item_count: Count
    current_turn_persisted_item_count: Count
    input_persisted: bool
    history_rewritten: bool
    nested_history_owned: list[_Owned]
    agent_started: bool
    starting_agent: _Reference | None = None
    current_step: _Step | None = None
    nested_states: dict[str, Json] = {}
    incomplete_reason: str | None = None


def stored(held: Mapping[str, Any]) -> Stored:
    """Return a state as it lies in JSON data.

    Raises UserError where it is not as it was written, with where, what came and what was expected.
    """
    try:
        read = msgspec.convert(held, Stored)
    except msgspec.ValidationError as error:
        raise UserError(f"the run state is not as to_json wrote it: {error}") from None
    wrong = _contradiction(read, held)
    if wrong:
        raise UserError(f"the run state is not as to_json wrote it: {wrong}")
    return read


def _contradiction(stored: Stored, held: Mapping[str, Any]) -> str | None:
    """Return what of a state says another thing than the rest of it; None where all goes together."""
    count, items, read = stored.current_turn_item_count, held["session_items"], held["generated_items"]
    if count > min(len(items), len(read)) or (count and items[-count:] != read[-count:]):
        return f"the last {count} of session_items and of generated_items are those of one turn, and are not the same"
    if stored.current_turn_persisted_item_count > count:
        return f"of {count} items of the turn {stored.current_turn_persisted_item_count} are in the session"
    if any(one.index >= len(items) for one in stored.nested_history_owned):
        return f"nested_history_owned has a place beyond the {len(items)} session_items"
    open_turn = stored.current_step is not None and stored.current_step.type != "next_step_final_output"
    if open_turn and not stored.model_responses:
        return "a turn is open, and model_responses has no answer that began it"
    return None
