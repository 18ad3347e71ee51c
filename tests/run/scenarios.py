"""Runs as data: agents, what their models say, and what comes of it. Each is run in every way that a run has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from antiphon.agent import Agent
from antiphon.handoffs import handoff
from antiphon.run import RunConfig
from antiphon.testing import ScriptedModel, assistant_message, function_call, reasoning_item
from antiphon.tool import FunctionTool, function_tool


class Weather(BaseModel):
    """A structured output."""

    city: str
    degrees: int


@dataclass
class World:
    """What the tools of a scenario did, in order, and whether their calls wait for approval."""

    gated: bool = False
    done: list[str] = field(default_factory=list)

    def tool(self, name: str, answer: Any = None, *, free: bool = False) -> FunctionTool:
        """Return a tool that notes its call and returns its name, the argument, or `answer`."""

        async def run(text: str = "") -> Any:
            self.done.append(f"{name}({text})")
            return f"{name} says {text}" if answer is None else answer

        return function_tool(run, name_override=name, needs_approval=self.gated and not free)


@dataclass(frozen=True)
class Scenario:
    """`build` makes the agents anew; `items` are what the run must bring, as `told` says them; `done`: by the tools."""

    name: str
    build: Callable[[World], Agent[Any]]
    items: list[str]
    output: Any
    done: list[str] = field(default_factory=list)
    last: str = "A"
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def told(item: Any) -> str:
    """Return an item in a word or two."""
    raw = item.raw_item if isinstance(item.raw_item, dict) else item.raw_item.to_dict()
    text = raw.get("name") or raw.get("output") or "".join(one.get("text", "") for one in raw.get("content") or ())
    agent = "" if item.agent.name == "A" else f"@{item.agent.name}"
    return f"{item.type.removesuffix('_item')}:{text}{agent}"


def call(name: str, number: int = 1, **arguments: Any) -> Any:
    return function_call(name, arguments, call_id=f"call_{name}_{number}")


def agent(name: str, *steps: Any, **options: Any) -> Agent[Any]:
    return Agent(name, model=ScriptedModel(steps), **options)


def text_only(world: World) -> Agent[Any]:
    return agent("A", [assistant_message("hello")])


def one_tool(world: World) -> Agent[Any]:
    return agent("A", [call("look", text="x")], [assistant_message("done")], tools=[world.tool("look")])


def two_tools_two_turns(world: World) -> Agent[Any]:
    return agent(
        "A",
        [reasoning_item("hm"), assistant_message("I look"), call("look", text="x"), call("find", text="y")],
        [call("look", 2, text="z")],
        [assistant_message("done")],
        tools=[world.tool("look"), world.tool("find")],
    )


def handoff_only(world: World) -> Agent[Any]:
    b = agent("B", [assistant_message("I am B")])
    return agent("A", [call("transfer_to_b")], handoffs=[b])


def tool_beside_handoff(world: World) -> Agent[Any]:
    b = agent("B", [assistant_message("I am B")])
    return agent("A", [call("look", text="x"), call("transfer_to_b")], tools=[world.tool("look")], handoffs=[b])


def message_and_handoff(world: World) -> Agent[Any]:
    b = agent("B", [assistant_message("I am B")])
    return agent("A", [assistant_message("wait"), call("transfer_to_b")], handoffs=[b])


def two_handoffs(world: World) -> Agent[Any]:
    b, c = agent("B", [assistant_message("I am B")]), agent("C")
    return agent("A", [call("transfer_to_b"), call("transfer_to_c")], handoffs=[b, c])


def there_and_back(world: World) -> Agent[Any]:
    a = agent("A", [call("transfer_to_b")], [call("look", text="x")], [assistant_message("back")])
    b = agent("B", [call("find", text="y")], [call("transfer_to_a")], tools=[world.tool("find")])
    a.tools, a.handoffs, b.handoffs = [world.tool("look")], [b], [a]
    return a


def filtered_handoff(world: World) -> Agent[Any]:
    b = agent("B", [assistant_message("I am B")])
    by = handoff(b, input_filter=lambda data: data.clone(input_history="anew", pre_handoff_items=(), new_items=()))
    return agent("A", [call("look", text="x")], [call("transfer_to_b")], tools=[world.tool("look")], handoffs=[by])


def structured(world: World) -> Agent[Any]:
    return agent(
        "A",
        [call("look", text="x")],
        [assistant_message('{"city": "Graz", "degrees": 7}')],
        tools=[world.tool("look")],
        output_type=Weather,
    )


def structured_list(world: World) -> Agent[Any]:
    return agent("A", [assistant_message('{"response": [1, 2]}')], output_type=list[int])


def stop_on_first(world: World) -> Agent[Any]:
    return agent(
        "A",
        [call("find", text="x"), call("look", text="y")],
        tools=[world.tool("look"), world.tool("find", 3)],
        tool_use_behavior="stop_on_first_tool",
    )


def stop_at_name(world: World) -> Agent[Any]:
    return agent(
        "A",
        [call("find", text="x"), call("look", text="y")],
        tools=[world.tool("look"), world.tool("find")],
        tool_use_behavior={"stop_at_tool_names": ["look"]},
    )


def unknown_tool(world: World) -> Agent[Any]:
    steps = [call("get_date"), call("look", text="x")], [assistant_message("done")]
    return agent("A", *steps, tools=[world.tool("look")])


def namespaced_like_handoff(world: World) -> Agent[Any]:
    b = agent("B")
    named = function_call("transfer_to_b", {}, call_id="call_1", namespace="crm")
    return agent("A", [named], [assistant_message("done")], handoffs=[b])


def repeated_call(world: World) -> Agent[Any]:
    return agent(
        "A",
        [call("look", text="x")],
        [call("look", text="x")],
        [assistant_message("done")],
        tools=[world.tool("look")],
    )


def nested_agent(world: World) -> Agent[Any]:
    inner = agent("Inner", [call("look", text="x")], [assistant_message("inner done")], tools=[world.tool("look")])
    return agent(
        "A",
        [call("ask", input="?")],
        [assistant_message("done")],
        tools=[inner.as_tool("ask", "Ask.")],
    )


def two_nested_agents(world: World) -> Agent[Any]:
    def inner(name: str) -> Agent[Any]:
        steps = [call("look", text=name)], [assistant_message(f"{name} done")]
        return agent(name, *steps, tools=[world.tool("look")])

    return agent(
        "A",
        [call("one", input="?"), call("two", input="?"), call("find", text="y")],
        [assistant_message("done")],
        tools=[inner("I").as_tool("one", ""), inner("J").as_tool("two", ""), world.tool("find")],
    )


RETURN = {"run_config": RunConfig(tool_not_found_behavior="return_error_to_model")}

SCENARIOS = [
    Scenario("text", text_only, ["message_output:hello"], "hello"),
    Scenario(
        "a tool",
        one_tool,
        ["tool_call:look", "tool_call_output:look says x", "message_output:done"],
        "done",
        ["look(x)"],
    ),
    Scenario(
        "tools in two turns, reasoning and a message first",
        two_tools_two_turns,
        [
            "reasoning:",
            "message_output:I look",
            "tool_call:look",
            "tool_call:find",
            "tool_call_output:look says x",
            "tool_call_output:find says y",
            "tool_call:look",
            "tool_call_output:look says z",
            "message_output:done",
        ],
        "done",
        ["look(x)", "find(y)", "look(z)"],
    ),
    Scenario(
        "handoff-only turn",
        handoff_only,
        ["handoff_call:transfer_to_b", 'handoff_output:{"assistant": "B"}', "message_output:I am B@B"],
        "I am B",
        last="B",
    ),
    Scenario(
        "tool beside handoff",
        tool_beside_handoff,
        [
            "tool_call:look",
            "handoff_call:transfer_to_b",
            "tool_call_output:look says x",
            'handoff_output:{"assistant": "B"}',
            "message_output:I am B@B",
        ],
        "I am B",
        ["look(x)"],
        "B",
    ),
    Scenario(
        "message and handoff in one turn",
        message_and_handoff,
        [
            "message_output:wait",
            "handoff_call:transfer_to_b",
            'handoff_output:{"assistant": "B"}',
            "message_output:I am B@B",
        ],
        "I am B",
        last="B",
    ),
    Scenario(
        "two handoffs: the first wins",
        two_handoffs,
        [
            "handoff_call:transfer_to_b",
            "handoff_call:transfer_to_c",
            "tool_call_output:Multiple handoffs detected, ignoring this one.",
            'handoff_output:{"assistant": "B"}',
            "message_output:I am B@B",
        ],
        "I am B",
        last="B",
    ),
    Scenario(
        "there and back, with tools on both sides",
        there_and_back,
        [
            "handoff_call:transfer_to_b",
            'handoff_output:{"assistant": "B"}',
            "tool_call:find@B",
            "tool_call_output:find says y@B",
            "handoff_call:transfer_to_a@B",
            'handoff_output:{"assistant": "A"}@B',
            "tool_call:look",
            "tool_call_output:look says x",
            "message_output:back",
        ],
        "back",
        ["find(y)", "look(x)"],
    ),
    Scenario(
        "a filter that forgets",
        filtered_handoff,
        ["tool_call:look", "tool_call_output:look says x", "message_output:I am B@B"],
        "I am B",
        ["look(x)"],
        "B",
    ),
    Scenario(
        "structured output",
        structured,
        ["tool_call:look", "tool_call_output:look says x", 'message_output:{"city": "Graz", "degrees": 7}'],
        Weather(city="Graz", degrees=7),
        ["look(x)"],
    ),
    Scenario("an output that is no object", structured_list, ['message_output:{"response": [1, 2]}'], [1, 2]),
    Scenario(
        "stop on first tool",
        stop_on_first,
        ["tool_call:find", "tool_call:look", "tool_call_output:3", "tool_call_output:look says y"],
        "3",
        ["find(x)", "look(y)"],
    ),
    Scenario(
        "stop at a tool's name",
        stop_at_name,
        ["tool_call:find", "tool_call:look", "tool_call_output:find says x", "tool_call_output:look says y"],
        "look says y",
        ["find(x)", "look(y)"],
    ),
    Scenario(
        "a tool that does not exist",
        unknown_tool,
        [
            "tool_call:get_date",
            "tool_call:look",
            "tool_call_output:Tool 'get_date' not found.",
            "tool_call_output:look says x",
            "message_output:done",
        ],
        "done",
        ["look(x)"],
        options=RETURN,
    ),
    Scenario(
        "a namespaced call is no handoff",
        namespaced_like_handoff,
        [
            "tool_call:transfer_to_b",
            "tool_call_output:Tool 'crm.transfer_to_b' not found.",
            "message_output:done",
        ],
        "done",
        options=RETURN,
    ),
    Scenario(
        "the same call again is not made again",
        repeated_call,
        ["tool_call:look", "tool_call_output:look says x", "message_output:done"],
        "done",
        ["look(x)"],
    ),
    Scenario(
        "an agent as a tool",
        nested_agent,
        ["tool_call:ask", "tool_call_output:inner done", "message_output:done"],
        "done",
        ["look(x)"],
    ),
    Scenario(
        "two agents as tools beside a tool",
        two_nested_agents,
        [
            "tool_call:one",
            "tool_call:two",
            "tool_call:find",
            "tool_call_output:I done",
            "tool_call_output:J done",
            "tool_call_output:find says y",
            "message_output:done",
        ],
        "done",
        ["find(y)", "look(I)", "look(J)"],
    ),
]
