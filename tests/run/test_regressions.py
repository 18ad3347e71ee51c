"""Faults that were seen in other runners, by their names: each is a test here, and none is without one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent
from antiphon.handoffs import handoff
from antiphon.models import ModelResponse, Usage
from antiphon.run import Runner
from antiphon.stream_events import RunItemStreamEvent
from antiphon.testing import ModelStep, ScriptedModel, assistant_message, function_call, reasoning_item
from antiphon.tool import FunctionTool

from .memory import ListSession
from .scenarios import World, agent, call, handoff_only, message_and_handoff, tool_beside_handoff
from .test_runs import plain, streamed

CASES = Path(__file__).parents[3] / "shared" / "cases" / "bugs"
AREAS = frozenset({"runner", "handoff", "approval", "cancel", "session"})
WAYS = pytest.mark.parametrize("run", [plain, streamed])

# case -> the module that has it as a test
TESTED = {
    "101-dangling-reasoning-after-filter": "test_regressions",
    "130-handoff-item-missing-in-stream": "test_stream",
    "131-tool-called-only-after-execution": "test_stream",
    "134-unknown-tool-recovery": "scenarios",
    "136-siblings-cancelled-on-fatal-error": "test_runs",
    "137-tripwire-then-tool-side-effect": "test_runs",
    "138-output-guardrail-swallowed": "test_runs",
    "141-handoff-filter-leaves-tool-traces": "test_handoffs",
    "144-mixed-parallel-approval-drops-output": "test_approvals",
    "145-nested-agent-tool-approval-loops": "test_approvals",
    "147-rejection-message-lost": "test_approvals",
    "148-approval-owner-unknown-fails-closed": "test_state",
    "149-approved-tool-output-before-guardrail": "test_runs",
    "151-streamed-run-again-not-saved": "test_runs",
    "155-break-out-of-event-loop": "test_cancel",
    "156-cancel-mid-tool-call-leaves-orphan": "test_cancel",
}


@pytest.mark.skipif(not CASES.is_dir(), reason="the collected faults are not beside this checkout")
def test_every_fault_of_a_runner_has_a_test() -> None:
    known = [json.loads(path.read_text()) for path in sorted(CASES.glob("*.json"))]
    wanted = {one["id"] for one in known if one["area"] in AREAS}
    assert wanted <= set(TESTED)
    assert all((Path(__file__).parent / f"{module}.py").exists() for module in TESTED.values())


# --- a handoff is announced once, as what it is ----------------------------------------------------------------------


async def names(build: Any) -> list[str]:
    result = Runner.run_streamed(build(World()), "go")
    events = [event async for event in result.stream_events() if isinstance(event, RunItemStreamEvent)]
    assert [event.item for event in events] == result.new_items
    return [event.name for event in events]


async def test_handoff_only_turn() -> None:
    """One handoff_requested, no tool_called."""
    assert await names(handoff_only) == ["handoff_requested", "handoff_occured", "message_output_created"]


async def test_tool_beside_handoff() -> None:
    """One of each."""
    found = await names(tool_beside_handoff)
    assert found[:2] == ["tool_called", "handoff_requested"]
    assert (found.count("tool_called"), found.count("handoff_requested")) == (1, 1)


async def test_message_and_handoff_in_one_turn() -> None:
    """The events are the new items, one by one."""
    assert await names(message_and_handoff) == [
        "message_output_created",
        "handoff_requested",
        "handoff_occured",
        "message_output_created",
    ]


# --- reasoning and what it led to stay together ----------------------------------------------------------------------

REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
USER = {"role": "user", "content": "a"}
CALL = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "x"}
SAID = {"role": "assistant", "content": "hi"}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed"}

HISTORIES: list[tuple[list[Any], list[Any]]] = [
    ([USER, REASONING, USER], [USER, USER]),
    ([USER, REASONING], [USER]),
    ([USER, REASONING, REASONING, USER], [USER, USER]),
    ([USER, REASONING, SAID], [USER, REASONING, SAID]),
    ([USER, REASONING, REASONING, SAID], [USER, REASONING, REASONING, SAID]),
    ([USER, REASONING, SEARCH, SAID], [USER, REASONING, SEARCH, SAID]),
    ([USER, REASONING, CALL, OUTPUT], [USER, REASONING, CALL, OUTPUT]),
    ([USER, REASONING, CALL], [USER]),
    ([USER, REASONING, CALL, SAID], [USER, SAID]),
    ([OUTPUT, REASONING, SAID], [REASONING, SAID]),
    ([USER, REASONING, {**CALL, "call_id": "gone"}, CALL, OUTPUT], [USER, REASONING, CALL, OUTPUT]),
]


@WAYS
@pytest.mark.parametrize(("history", "expected"), HISTORIES)
async def test_reasoning_in_a_session(run: Any, history: list[Any], expected: list[Any]) -> None:
    a = agent("A", [assistant_message("done")])
    await run(a, "go", session=ListSession(history))
    assert a.model.last_call.input == [*expected, {"role": "user", "content": "go"}]


@WAYS
async def test_reasoning_after_a_handoff_filter(run: Any) -> None:
    def no_calls(data: Any) -> Any:
        kept = tuple(item for item in data.new_items if "handoff" not in item.type)
        return data.clone(new_items=kept)

    b = agent("B", [assistant_message("I am B")])
    by = handoff(b, input_filter=no_calls)
    a = agent("A", [reasoning_item("hm"), call("transfer_to_b")], handoffs=[by])
    result = await run(a, "go")
    assert b.model.last_call.input == [{"role": "user", "content": "go"}]
    kinds = [item.get("type", "message") for item in result.to_input_list(mode="normalized")]
    assert kinds == ["message", "message"]


# --- arguments that were cut off are never run -----------------------------------------------------------------------


@WAYS
async def test_cut_arguments(run: Any) -> None:
    """The server says that the call is whole, and it is not."""
    world, raw_done = World(), list[str]()

    async def raw(ctx: Any, arguments: str) -> str:
        raw_done.append(arguments)
        return "x"

    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    tools = [world.tool("look"), FunctionTool("raw", "", schema, raw)]
    cut = [function_call(name, '{"text": "ab', call_id=f"call_{name}") for name in ("look", "raw")]
    a = agent("A", cut, [assistant_message("done")], tools=tools)
    result = await run(a, "go")
    assert (result.final_output, world.done, raw_done) == ("done", [], [])
    sent = a.model.last_call.input
    assert [item["arguments"] for item in sent if item.get("type") == "function_call"] == ['{"text": "ab'] * 2
    outputs = [item["output"] for item in sent if item.get("type") == "function_call_output"]
    assert all(
        f"Invalid JSON input for tool {name}" in text for name, text in zip(("look", "raw"), outputs, strict=True)
    )


@WAYS
async def test_a_call_that_says_it_is_incomplete(run: Any) -> None:
    world = World()
    raw = call("look", text="x")
    raw.status = "incomplete"
    with pytest.raises(Exception, match="the model's answer is incomplete"):
        await run(agent("A", [raw], tools=[world.tool("look")]), "go")
    assert world.done == []


@WAYS
async def test_a_failed_answer_is_a_typed_error(run: Any) -> None:
    from antiphon.errors import RateLimited

    a = Agent("A", model=ScriptedModel([ModelStep.raise_error(RateLimited("slow down", status_code=429))]))
    with pytest.raises(RateLimited, match="slow down"):
        await run(a, "go")


async def test_two_runs_of_one_agent_at_once() -> None:
    """Nothing of a run is kept in its agent."""
    import asyncio

    world = World()
    tool = world.tool("look")

    class Echo(ScriptedModel):
        async def get_response(self, *asked: Any, **more: Any) -> ModelResponse:
            said = asked[1][0]["content"]
            await asyncio.sleep(0)
            output: list[Any] = [call("look", text=said)] if len(asked[1]) == 1 else [assistant_message(said)]
            return ModelResponse(output=output, usage=Usage(requests=1), response_id=None)

    a = Agent("A", model=Echo(), tools=[tool])
    results = await asyncio.gather(*(Runner.run(a, str(number)) for number in range(20)))
    assert [result.final_output for result in results] == [str(number) for number in range(20)]
    assert sorted(world.done) == sorted(f"look({number})" for number in range(20))
