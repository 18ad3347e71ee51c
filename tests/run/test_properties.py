"""Whatever agents do in their turns, a run is the same plain, streamed, and paused at any of its calls."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.agent import Agent
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

    def build(self, world: World) -> Agent[Any]:
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
            one.model, one.tools, one.handoffs = ScriptedModel(steps[one.name]), [free, gated], [to]
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


def _each_call_has_its_output(items: list[Any]) -> None:
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    outputs = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    assert sorted(calls) == sorted(outputs)
    assert len(set(calls)) == len(calls)
