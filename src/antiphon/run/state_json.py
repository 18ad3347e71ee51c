"""A `RunState` as JSON data, and back. The names follow those of the OpenAI Agents SDK's own states."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, cast

from pydantic import BaseModel

from antiphon.exceptions import UserError
from antiphon.logger import logger
from antiphon.stream.chunk import plain

from .agent import Agent
from .approvals import Ledger
from .context import RunContextWrapper, is_context
from .handoffs import OwnedItem
from .items import InputItem, ItemHelpers, ToolApprovalItem
from .items_json import AgentGraph, item_json, output_item, read_item, read_results, response_json, results_json
from .reading import Json
from .state import Conversation, ReadOptions, RunState, WriteOptions
from .state_shape import Context, Stored, stored

VERSION = "1.0"
VERSIONS = frozenset({VERSION})
# name in the data -> field of the state, or of its conversation, where the one is the other
FIELDS: dict[str, str] = {
    "current_turn": "current_turn",
    "max_turns": "max_turns",
    "current_turn_persisted_item_count": "turn_saved",
    "input_persisted": "input_saved",
    "history_rewritten": "rewritten",
    "agent_started": "begun",
    "reasoning_item_id_policy": "reasoning_item_id_policy",
    "incomplete_reason": "incomplete_reason",
}
CONVERSATION: dict[str, str] = {
    "conversation_id": "conversation_id",
    "previous_response_id": "previous_response_id",
    "auto_previous_response_id": "auto",
    "conversation_known_item_count": "known",
}


def state_json(state: RunState[Any], options: WriteOptions) -> Json:
    """Return a state as JSON data."""
    graph = AgentGraph(state.starting_agent, state.current_agent)
    responses = [response_json(one) for one in state.model_responses]
    turn = [item_json(item, graph) for item in state.turn]
    items = [item_json(item, graph) for item in state.new_items]
    ledger = state.context._ledger  # pyright: ignore[reportPrivateUsage]  # a part of the same thing
    return {
        "$schemaVersion": VERSION,
        "current_agent": graph.reference(state.current_agent),
        "starting_agent": graph.reference(state.starting_agent),
        "original_input": plain(state.original_input),
        "pending_input": [item_json(item, graph) for item in state.queued],
        "model_responses": responses,
        "context": {
            "usage": asdict(state.context.usage),
            **ledger.to_json(),
            **_context_json(state.context.context, options),
            "tool_input": plain(state.context.tool_input),
        },
        "tool_use_tracker": {_identity(graph, agent): list(names) for agent, names in state.used if names},
        **{name: getattr(state, field) for name, field in FIELDS.items()},
        **{name: getattr(state.conversation, field) for name, field in CONVERSATION.items()},
        **results_json(state, graph),
        "generated_items": [*(item_json(item, graph) for item in state.model_items), *turn],
        "session_items": [*items, *turn],
        "current_turn_item_count": len(turn),
        "nested_history_owned": _owned_json(state),
        "current_step": _step_json(state, graph),
        "nested_states": {call_id: _inner_json(one, graph) for call_id, one in ledger.nested.items()},
        "last_model_response": responses[-1] if responses else None,
        "last_processed_response": {"new_items": turn} if state.answered else None,
        "final_output": plain(state.final_output) if state.ended else None,
        "trace": None,
    }


def _inner_json(state: RunState[Any], graph: AgentGraph) -> Json:
    """Return the state of a run inside an agent tool; its agent is found from that of the run around it."""
    held = state_json(state, {"context_serializer": lambda context: {}})  # it is that of the run around it
    return {**held, "starting_agent": graph.reference(state.starting_agent)}


def _identity(graph: AgentGraph, agent: Agent[Any]) -> str:
    reference = graph.reference(agent) or {}
    return str(reference.get("identity") or reference.get("name"))


def _owned_json(state: RunState[Any]) -> list[Json]:
    places = {id(item): place for place, item in enumerate(state.new_items)}
    known = [one for one in state.owned if id(one.run_item) in places]
    return [{"index": places[id(one.run_item)], "input_item": plain(one.input_item)} for one in known]


def _step_json(state: RunState[Any], graph: AgentGraph) -> Json | None:
    """Return what the run has to do next, but for the simple case that the model is called."""
    if state.ended:
        return {"type": "next_step_final_output"}
    if not state.pending:
        return {"type": "next_step_open_turn"} if state.answered else None
    waiting = [{**item_json(item, graph), **_nested_place(state, item)} for item in state.pending]
    return {"type": "next_step_interruption", "data": {"interruptions": waiting}}


def _nested_place(state: RunState[Any], item: ToolApprovalItem) -> Json:
    """Return where a call waits that is inside an agent tool: the id of its call, and the place there."""
    nested = state.context._ledger.nested  # pyright: ignore[reportPrivateUsage]  # a part of the same thing
    for call_id, one in nested.items():
        for place, inner in enumerate(one.pending):
            if inner is item:
                return {"nested_call_id": call_id, "nested_index": place}
    return {}


# --- the caller's context --------------------------------------------------------------------------------------------


def _context_json(context: Any, options: WriteOptions) -> Json:
    """Return what is stored of a context, and how. A type that is lost is warned of, or, in strict mode, refused."""
    kind, value = _kind_of(context)
    serializer: Callable[[Any], Any] | None = options.get("context_serializer")
    if serializer is not None:
        made: Any = serializer(context)
        if not isinstance(made, Mapping):
            raise UserError(f"context_serializer returned {type(made).__name__}: a mapping is expected")
        kind, value = "serialized", dict(cast("Mapping[str, Any]", made))
    elif kind not in ("none", "mapping"):
        told = (
            f"the context is {type(context).__name__}, and a state keeps {'its fields' if value else 'nothing'} of it"
        )
        if options.get("strict_context"):
            raise UserError(f"{told}: give a context_serializer, a mapping, or leave out strict_context")
        logger.warning("%s; give a context_serializer to keep all, and a context_deserializer to restore it", told)
    meta = {"original_type": kind, "requires_deserializer": kind not in ("none", "mapping")}
    return {"context": plain(value), "context_meta": meta}


def _kind_of(context: Any) -> tuple[str, Any]:
    match context:
        case None:
            return "none", None
        case Mapping():
            return "mapping", dict(cast("Mapping[str, Any]", context))
        case BaseModel():
            return "pydantic", context.model_dump(mode="json")
        case _ if dataclasses.is_dataclass(context) and not isinstance(context, type):
            return "dataclass", {one.name: getattr(context, one.name) for one in dataclasses.fields(context)}
        case _:
            return "custom", {}


def _read_context(read: Context, options: ReadOptions) -> Any:
    override, deserializer = options.get("context_override"), options.get("context_deserializer")
    if override is not None:
        return override.context if is_context(override) else override
    if deserializer is not None:
        return deserializer(read.context)
    if read.context_meta.get("requires_deserializer"):
        told = "the context of the state had a type of its own, which is lost"
        if options.get("strict_context"):
            raise UserError(f"{told}: give a context_deserializer or a context_override, or leave out strict_context")
        logger.warning("%s: give a context_deserializer or a context_override", told)
    return read.context


# --- and back --------------------------------------------------------------------------------------------------------


def read_state(agent: Agent[Any], data: Any, options: ReadOptions) -> RunState[Any]:
    """Return the state that `state_json` gave. Raises UserError for what is none."""
    if not isinstance(data, Mapping):
        raise UserError(f"a run state is a JSON object, and this is {type(data).__name__}")
    held = dict(cast("Mapping[str, Any]", data))
    version: Any = held.get("$schemaVersion")
    if not isinstance(version, str) or version not in VERSIONS:
        raise UserError(
            f"Run state schema version {version!r} is not supported; "
            f"supported versions are: {', '.join(sorted(VERSIONS))}"
        )
    read = stored(held)
    try:
        return _read(agent, read, held, _read_context(read.context, options))
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"the run state is not as to_json wrote it: {type(error).__name__} {error}") from error


def _read(agent: Agent[Any], read: Stored, held: Json, context: Any) -> RunState[Any]:
    graph = AgentGraph(agent)
    count = read.current_turn_item_count
    session_items = [read_item(one, graph) for one in held["session_items"]]
    generated = [read_item(one, graph) for one in held["generated_items"]]
    split, model_split = len(session_items) - count, len(generated) - count
    step = None if read.current_step is None else read.current_step.type
    state: RunState[Any] = RunState(
        _read_wrapper(read.context, context),
        read.original_input,
        graph.find(held.get("starting_agent")),
        current_agent=graph.find(held["current_agent"]),
        new_items=session_items[:split],
        model_items=generated[:model_split],
        turn=session_items[split:],
        model_responses=[replace(one, output=list(map(output_item, one.output))) for one in read.model_responses],
        conversation=Conversation(**{field: getattr(read, name) for name, field in CONVERSATION.items()}),
        owned=tuple(OwnedItem(session_items[one.index], one.input_item) for one in read.nested_history_owned),
        answered=step in ("next_step_interruption", "next_step_open_turn"),
        ended=step == "next_step_final_output",
        final_output=held.get("final_output"),
        used=[(graph.find({"name": one}), names) for one, names in read.tool_use_tracker.items()],
        **{field: getattr(read, name) for name, field in FIELDS.items()},
        **read_results(held, graph),
    )
    state.queued = [_read_input(one, graph, state) for one in read.pending_input]
    _read_pending(state, held.get("current_step") or {}, held, graph)
    return state


def _read_wrapper(read: Context, context: Any) -> RunContextWrapper[Any]:
    ledger = Ledger(read.approvals, read.tool_invocations, read.agent_tool_approvals)
    return RunContextWrapper(context, usage=read.usage, tool_input=read.tool_input, _ledger=ledger)


def _read_input(data: Any, graph: AgentGraph, state: RunState[Any]) -> InputItem:
    item = read_item(data, graph) if "raw_item" in data else None
    if isinstance(item, InputItem):
        return item
    return InputItem(state.current_agent, ItemHelpers.input_to_new_input_list([data])[0])


def _read_pending(state: RunState[Any], step: Json, held: Json, graph: AgentGraph) -> None:
    """Restore the calls that wait, those inside agent tools in the states of their own runs.

    Raises UserError where the run was interrupted and nothing waits: it could not go on.
    """
    ledger = state.context._ledger  # pyright: ignore[reportPrivateUsage]  # a part of the same thing
    for call_id, one in held.get("nested_states", {}).items():
        inner = graph.find(one["starting_agent"])
        own = {**one, "starting_agent": None}
        ledger.nested[call_id] = read_state(inner, own, {"context_override": state.context})
    state.pending = [_read_waiting(one, graph, ledger) for one in step.get("data", {}).get("interruptions", ())]
    if step.get("type") == "next_step_interruption" and not state.pending:
        raise UserError("the run state was interrupted, and none of the calls that waited could be restored")


def _read_waiting(data: Json, graph: AgentGraph, ledger: Ledger) -> ToolApprovalItem:
    if "nested_call_id" in data:
        inner: Any = ledger.nested.get(data["nested_call_id"])
        if inner is None or data["nested_index"] >= len(inner.pending):
            raise UserError(
                f"no call waits in the run state at place {data['nested_index']} of {data['nested_call_id']!r}"
            )
        waiting: ToolApprovalItem = inner.pending[data["nested_index"]]
        return waiting
    item = read_item(data, graph)
    if not isinstance(item, ToolApprovalItem):
        raise UserError(f"a call that waits is a tool_approval_item, and the run state has a {item.type}")
    return item
