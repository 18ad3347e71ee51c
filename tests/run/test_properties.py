"""Whatever agents do in their turns, a run is the same plain, streamed, paused at any of its calls, and broken off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.agent import Agent
from antiphon.models import Model, ModelResponse
from antiphon.run import Runner
from antiphon.run_state import RunState
from antiphon.stream_events import RunItemStreamEvent
from antiphon.testing import ScriptedModel, assistant_message, function_call, reasoning_item

from .memory import ListSession
from .scenarios import World, told

WORDS = ("reason", "say", "free", "gated", "hand over")


@dataclass(frozen=True)
class Script:
    """What the models say: for each turn some words, then a last message."""

    turns: tuple[tuple[str, ...], ...]

    def build(self, world: World, model: Callable[[list[Any]], Model] = ScriptedModel) -> Agent[Any]:
        """Return the first of two agents who hand over to each other."""
        a, b = Agent("A"), Agent("B")
        steps: dict[str, list[Any]] = {"A": [], "B": []}
        current, other = "A", "B"
        for number, turn in enumerate(self.turns):
            steps[current].append([self._item(word, f"{number}_{place}", other) for place, word in enumerate(turn)])
            if "hand over" in turn:
                current, other = other, current
        steps[current].append([assistant_message("done")])
        free, gated = world.tool("free", free=True), world.tool("gated")
        for one, to in ((a, b), (b, a)):
            one.model, one.tools, one.handoffs = model(steps[one.name]), [free, gated], [to]
        return a

    @staticmethod
    def _item(word: str, number: str, other: str) -> Any:
        match word:
            case "reason":
                return reasoning_item(number)
            case "say":
                return assistant_message(number, item_id=f"msg_{number}")
            case "hand over":
                return function_call(f"transfer_to_{other.lower()}", {}, call_id=number)
            case tool:
                return function_call(tool, {"text": number}, call_id=number)


def acts(turn: list[str]) -> bool:
    """Whether a turn is not the last one: something is called, and it hands over once at most."""
    return turn.count("hand over") <= 1 and bool(set(turn) & {"free", "gated", "hand over"})


TURN = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).filter(acts).map(tuple)
SCRIPTS = st.builds(Script, st.lists(TURN, max_size=4).map(tuple))


@settings(max_examples=60, deadline=None)
@given(SCRIPTS, st.data())
def test_every_way_is_the_same(script: Script, data: st.DataObject) -> None:
    asyncio.run(_same(script, data))


async def _same(script: Script, data: st.DataObject) -> None:
    world, session = World(), ListSession()
    plain = await Runner.run(script.build(world), "go", session=session)
    expected = [told(item) for item in plain.new_items]
    assert session.items == plain.to_input_list()
    _each_call_has_its_output(session.items)

    other, streamed_session = World(), ListSession()
    result = Runner.run_streamed(script.build(other), "go", session=streamed_session)
    items = [event.item async for event in result.stream_events() if isinstance(event, RunItemStreamEvent)]
    assert [told(item) for item in items] == [told(item) for item in result.new_items] == expected
    assert (streamed_session.items, other.done) == (session.items, world.done)

    paused, paused_session = World(gated=True), ListSession()
    agent = script.build(paused)
    current: Any = await Runner.run(agent, "go", session=paused_session)
    while current.interruptions:
        state = current.to_state()
        if data.draw(st.booleans(), label="through JSON"):
            state = await RunState.from_string(agent, state.to_string())
        waiting = state.get_interruptions()
        for item in data.draw(st.lists(st.sampled_from(waiting), min_size=1, unique_by=id), label="approved"):
            state.approve(item)
        current = await Runner.run(agent, state, session=paused_session)
    assert sorted(told(item) for item in current.new_items) == sorted(expected)
    assert (current.final_output, sorted(paused.done)) == (plain.final_output, sorted(world.done))
    assert paused_session.items == current.to_input_list()
    _each_call_has_its_output(paused_session.items)


class Remembering(Model):
    """Says the first of its steps that is not in what it is given: also where a run goes on after it was broken off."""

    def __init__(self, steps: list[list[Any]]) -> None:
        self.steps = steps

    async def get_response(self, instructions: Any, given: Any, *asked: Any, **more: Any) -> ModelResponse:
        return await self._next(given).get_response(instructions, given, *asked, **more)

    async def stream_response(self, instructions: Any, given: Any, *asked: Any, **more: Any) -> AsyncIterator[Any]:
        async for event in self._next(given).stream_response(instructions, given, *asked, **more):
            await asyncio.sleep(0)
            yield event

    def _next(self, given: list[Any]) -> ScriptedModel:
        said = {item.get("call_id") or item.get("id") for item in given}
        left = (step for step in self.steps if (getattr(step[0], "call_id", None) or step[0].id) not in said)
        return ScriptedModel([next(left)])


ENDS = st.lists(
    st.tuples(st.sampled_from(["after_turn", "immediate", "aclose", "none"]), st.integers(0, 30), st.booleans()),
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(SCRIPTS, ENDS, st.booleans())
def test_a_run_that_is_broken_off_goes_on(script: Script, ends: list[tuple[str, int, bool]], gated: bool) -> None:
    asyncio.run(_broken_off(script, ends, gated))


async def _broken_off(script: Script, ends: list[tuple[str, int, bool]], gated: bool) -> None:
    straight = World()
    plain = await Runner.run(script.build(straight), "go")
    world, session = World(gated=gated), ListSession()
    agent = script.build(world, Remembering)
    state: Any = "go"
    for how, place, through_json in [*ends, *[("none", 0, True)] * 20]:
        result = Runner.run_streamed(agent, state, session=session)
        await _read_until(result, how, place)
        state = result.to_state()
        if state.ended:
            break
        state = await RunState.from_string(agent, state.to_string()) if through_json else state
        for item in state.get_interruptions():
            state.approve(item)
    assert sorted(told(item) for item in state.items) == sorted(told(item) for item in plain.new_items)
    assert (state.final_output, state.current_turn) == (plain.final_output, len(plain.raw_responses))
    assert set(world.done) == set(straight.done)
    if not {how for how, *_ in ends} & {"immediate", "aclose"}:  # no turn was broken off
        assert sorted(world.done) == sorted(straight.done)
    assert session.items == result.to_input_list()
    _each_call_has_its_output(session.items)


async def _read_until(result: Any, how: str, place: int) -> None:
    events = result.stream_events()
    number = 0
    async for _ in events:
        if number == place and how == "aclose":
            await events.aclose()
        elif number == place and how != "none":
            result.cancel(how)
        number += 1
    await asyncio.wait([result.run_loop_task])


def _each_call_has_its_output(items: list[Any]) -> None:
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    outputs = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    assert sorted(calls) == sorted(outputs)
    assert len(set(calls)) == len(calls)
