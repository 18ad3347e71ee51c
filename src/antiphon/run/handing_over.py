"""A handoff: the agent that takes over, and what it reads of the run so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from antiphon.exceptions import UserError
from antiphon.logger import logger
from antiphon.stream.chunk import fields

from .agent import Agent, is_agent
from .classify import HandoffRun
from .handoffs import Handoff, HandoffInputData, filtered, owned_items
from .history import nest_handoff_history
from .items import HandoffOutputItem, ItemHelpers, RunItem, RunItemBase, ToolCallOutputItem, call_id_of
from .running import Run
from .session import settled_items

IGNORED = "Multiple handoffs detected, ignoring this one."


async def hand_over(run: Run, agent: Agent[Any], calls: tuple[HandoffRun, ...]) -> tuple[Agent[Any], list[RunItem]]:
    """Return the agent that takes over, and the outputs of the calls."""
    first, *others = calls
    outputs: list[RunItem] = [
        ToolCallOutputItem(agent, ItemHelpers.tool_call_output_item(one.call, IGNORED), IGNORED) for one in others
    ]
    arguments: Any = fields(first.call).get("arguments")  # of a call without any, None
    target: Any = await first.handoff.on_invoke_handoff(run.state.context, arguments)
    if not is_agent(target):
        raise UserError(f"the handoff {first.handoff.tool_name!r} led to {type(target).__name__}: to an Agent it must")
    raw = ItemHelpers.tool_call_output_item(first.call, first.handoff.get_transfer_message(target))
    outputs.append(HandoffOutputItem(agent, raw, agent, target))
    await run.hooks.handoff(run.state.context, agent, target)
    return target, outputs


async def pass_on(
    run: Run, agent: Agent[Any], target: Agent[Any], outputs: list[RunItem], by: Handoff[Any, Any]
) -> None:
    """End the turn, with what the next agent reads made by the filter or the nesting that holds.

    All of it is saved first and becomes true at once then: a state that is kept meanwhile is before the handoff.
    """
    state = run.state
    turn = [*state.turn, *outputs]
    data = await _passed(run, agent, target, by, turn)
    saved = {id(item) for item in state.turn[: state.turn_saved]}
    kept = turn if data is None else [*_owed(turn, state.turn_saved, data.new_items), *settled_items(data.new_items)]
    await run.keep([item for item in kept if id(item) not in saved])
    for item in outputs:
        run.ledger.complete(call_id_of(item.raw_item) or "")
    if data is None:
        state.turn = turn
        state.end_turn()
    else:
        history = data.input_history
        state.original_input = history if isinstance(history, str) else list(history)
        said = ItemHelpers.input_to_new_input_list(state.original_input)
        state.owned, state.rewritten = owned_items(data), True
        state.new_items.extend(data.new_items)
        read = data.new_items if data.input_items is None else data.input_items
        state.model_items = settled_items([*data.pre_handoff_items, *read], said)
        state.start_turn()
    state.current_agent, state.begun = target, False


def _owed(turn: list[RunItem], saved: int, kept: Sequence[RunItem]) -> list[RunItem]:
    """Return the outputs that a filter left out, of calls that are in the session since the run has waited."""
    calls = {call_id_of(item.raw_item) for item in turn[:saved]} - {call_id_of(item.raw_item) for item in kept} - {None}
    return [item for item in turn[saved:] if call_id_of(item.raw_item) in calls]


async def _passed(
    run: Run, agent: Agent[Any], target: Agent[Any], by: Handoff[Any, Any], turn: list[RunItem]
) -> HandoffInputData | None:
    """Return what the next agent reads; None where that is all there was."""
    state = run.state
    input_filter = run.config.handoff_input_filter if by.input_filter is None else by.input_filter
    nests = run.config.nest_handoff_history if by.nest_handoff_history is None else by.nest_handoff_history
    if state.conversation.managed:
        _refuse(input_filter, nests, agent, target)
        return None
    if input_filter is None and not nests:
        return None
    said = state.original_input
    data = HandoffInputData(
        said if isinstance(said, str) else tuple(said), tuple(state.model_items), tuple(turn), state.context
    )
    if input_filter is not None:
        return _sound(await filtered(data, input_filter), by.tool_name)
    return nest_handoff_history(data, history_mapper=run.config.handoff_history_mapper)


def _sound(data: HandoffInputData, name: str) -> HandoffInputData:
    """Return what a filter made. Raises UserError where it is not text, input items and run items in their places."""
    history: Any = data.input_history
    parts: dict[str, Any] = {"pre_handoff_items": data.pre_handoff_items, "new_items": data.new_items}
    parts |= {} if data.input_items is None else {"input_items": data.input_items}
    wrong = [] if isinstance(history, str | tuple | list) else [f"input_history is {type(history).__name__}"]
    for part, items in parts.items():
        if not isinstance(items, tuple | list):
            wrong.append(f"{part} is {type(items).__name__}")
        wrong.extend(f"{part} has {kind}" for kind in _strangers(items))
    if wrong:
        raise UserError(
            f"what the input filter of the handoff {name!r} returned does not fit: {'; '.join(wrong)}. input_history is text "
            "or input items, the others are tuples of run items"
        )
    return data


def _strangers(items: Any) -> list[str]:
    """Return the names of the types that are no run items."""
    each = cast("Sequence[Any]", items if isinstance(items, tuple | list) else ())
    return sorted({type(one).__name__ for one in each if not isinstance(one, RunItemBase)})


def _refuse(input_filter: Any, nests: bool, agent: Agent[Any], target: Agent[Any]) -> None:
    """Raise UserError for a filter where the server keeps the history; nesting is left out."""
    where = f"the handoff from {agent.name!r} to {target.name!r}"
    if input_filter is not None:
        raise UserError(
            f"{where} has an input filter, and the server keeps the history (conversation_id, previous_response_id or "
            "auto_previous_response_id): it cannot be changed. Leave one of them out"
        )
    if nests:
        logger.warning("%s does not nest its history, since the server keeps it", where)
