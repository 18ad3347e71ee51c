"""Every scenario in every way of running it: plain, streamed, and interrupted and resumed wherever a tool is called."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from antiphon.items import CompactionItem, InputItem, ToolApprovalItem
from antiphon.run import Runner
from antiphon.run_state import RunState
from antiphon.stream_events import RunItemStreamEvent

from .scenarios import SCENARIOS, Scenario, World, told

UNSTREAMED = (ToolApprovalItem, CompactionItem, InputItem)
Way = Callable[[Scenario, World], Awaitable[tuple[Any, list[Any]]]]


async def plain(scenario: Scenario, world: World) -> tuple[Any, list[Any]]:
    return await Runner.run(scenario.build(world), "go", **scenario.options), []


async def streamed(scenario: Scenario, world: World) -> tuple[Any, list[Any]]:
    result = Runner.run_streamed(scenario.build(world), "go", **scenario.options)
    items = await _items(result)
    assert result.is_complete
    return result, items


async def resumed(scenario: Scenario, world: World) -> tuple[Any, list[Any]]:
    world.gated = True
    agent = scenario.build(world)
    result = await Runner.run(agent, "go", **scenario.options)
    while result.interruptions:
        result = await Runner.run(agent, _approved(result), **scenario.options)
    return result, []


async def resumed_streamed(scenario: Scenario, world: World) -> tuple[Any, list[Any]]:
    world.gated = True
    agent = scenario.build(world)
    result = Runner.run_streamed(agent, "go", **scenario.options)
    items = await _items(result)
    while result.interruptions:
        result = Runner.run_streamed(agent, _approved(result), **scenario.options)
        items += await _items(result)
    return result, items


async def resumed_elsewhere(scenario: Scenario, world: World) -> tuple[Any, list[Any]]:
    """Every decision is taken on a state that was written and read, before and after."""
    world.gated = True
    agent = scenario.build(world)
    result = await Runner.run(agent, "go", **scenario.options)
    while result.interruptions:
        state = await RunState.from_string(agent, result.to_state().to_string())
        assert [told(one) for one in state.get_interruptions()] == [told(one) for one in result.interruptions]
        for item in state.get_interruptions():
            state.approve(item)
        state = await RunState.from_string(agent, state.to_string())
        result = await Runner.run(agent, state, **scenario.options)
    return result, []


async def one_by_one(scenario: Scenario, world: World) -> tuple[Any, list[Any]]:
    """Only one call is approved at a time."""
    world.gated = True
    agent = scenario.build(world)
    result = await Runner.run(agent, "go", **scenario.options)
    for _ in range(20):
        if not result.interruptions:
            break
        state = result.to_state()
        state.approve(state.get_interruptions()[0])
        result = await Runner.run(agent, state, **scenario.options)
    return result, []


def _approved(result: Any) -> Any:
    state = result.to_state()
    for item in result.interruptions:
        state.approve(item)
    return state


async def _items(result: Any) -> list[Any]:
    return [event.item async for event in result.stream_events() if isinstance(event, RunItemStreamEvent)]


@pytest.mark.parametrize("way", [plain, streamed, resumed, resumed_streamed, resumed_elsewhere, one_by_one])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
async def test_a_run_brings_the_same_in_every_way(scenario: Scenario, way: Way) -> None:
    world = World()
    result, items = await way(scenario, world)
    assert [told(item) for item in result.new_items] == scenario.items
    assert result.final_output == scenario.output
    assert type(result.final_output) is type(scenario.output)
    assert sorted(world.done) == sorted(scenario.done)
    assert result.last_agent.name == scenario.last
    if items and scenario.name != "a filter that forgets":
        assert [id(item) for item in items] == [id(i) for i in result.new_items if not isinstance(i, UNSTREAMED)]
