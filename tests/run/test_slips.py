"""What a newcomer gives a run by mistake: each is said with what came and what is expected, before a model is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from antiphon import Agent, RunConfig, Runner, function_tool, handoff
from antiphon.exceptions import UserError
from antiphon.testing import ScriptedModel, assistant_message


def check(*given: Any) -> Any:
    """A function that is no guardrail, no tool and no hook yet."""
    return given


def agent(**fields: Any) -> Agent[Any]:
    return Agent(**{"name": "a", "model": ScriptedModel([[assistant_message("hi")]]), **fields})


def untyped(value: Any) -> Any:
    return value


async def run(starting: Any = None, **options: Any) -> Any:
    return await Runner.run(starting or agent(), "hi", **options)


# what was given -> (how it is used, the error, what it says)
SLIPS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "the name of an agent starts a run": (
        lambda: run("a"),
        UserError,
        "the starting agent is str: an Agent is expected",
    ),
    "the name of an agent is handed off to": (
        lambda: handoff("billing"),  # type: ignore[arg-type]  # the slip
        UserError,
        "what handoff() leads to is str: an Agent is expected",
    ),
    "a session is its id": (
        lambda: run(session="ada"),
        UserError,
        'the session is str: a Session, such as SQLiteSession("ada"), is expected',
    ),
    "an input guardrail is a bare function": (
        lambda: run(agent(input_guardrails=[check])),
        UserError,
        "a guardrail is function: a function with @input_guardrail is expected",
    ),
    "an output guardrail is a bare function": (
        lambda: run(agent(output_guardrails=[check])),
        UserError,
        "a guardrail is function: a function with @output_guardrail is expected",
    ),
    "an input guardrail of the run is a bare function": (
        lambda: run(run_config=RunConfig(input_guardrails=[check])),
        UserError,
        "a guardrail is function: a function with @input_guardrail is expected",
    ),
    "a tool is a bare function": (
        lambda: run(Agent("a", model="replay/text", tools=[check])),
        Exception,
        "a tool is the function check: it is a mapping, a function tool (`@function_tool` makes one of a function)",
    ),
    "tools to stop at, under another key": (
        lambda: agent(tool_use_behavior={"stop_at": ["f"]}),
        TypeError,
        "Agent tool_use_behavior must be 'run_llm_again', 'stop_on_first_tool', StopAtTools dict, or callable, got dict",
    ),
    "an agent tool without a name": (
        lambda: untyped(agent()).as_tool(),
        TypeError,
        "as_tool: missing a required argument: 'tool_name'; it takes tool_name, tool_description, ",
    ),
    "an agent tool with a misspelt option": (
        lambda: untyped(agent()).as_tool("ask", "asks", max_turn=3),
        TypeError,
        "as_tool: got an unexpected keyword argument 'max_turn'; it takes tool_name, ",
    ),
    "a function tool with a misspelt option": (
        lambda: function_tool(check, needs_aproval=True),  # type: ignore[call-overload]  # the slip
        TypeError,
        "function_tool has no option needs_aproval; there are: ",
    ),
    "a run with a misspelt option": (
        lambda: run(sessions=None),
        TypeError,
        "a run has no option sessions; there are: ",
    ),
}


@pytest.mark.parametrize("slip", SLIPS)
async def test_slip(slip: str) -> None:
    use, kind, said = SLIPS[slip]
    with pytest.raises(kind) as raised:
        await use()
    assert str(raised.value).startswith(said)


@pytest.mark.parametrize(
    ("url", "fitting"),
    [
        ("sqlite:///x.db", "sqlite+aiosqlite://"),
        ("sqlite+pysqlite:///x.db", "sqlite+aiosqlite://"),
    ],
)
def test_a_database_by_a_driver_without_asyncio(url: str, fitting: str) -> None:
    pytest.importorskip("aiosqlite")
    pytest.importorskip("sqlalchemy")
    from antiphon.memory import SQLAlchemySession

    with pytest.raises(UserError) as raised:
        SQLAlchemySession("s", url=url)
    assert f"write {fitting}" in str(raised.value)
