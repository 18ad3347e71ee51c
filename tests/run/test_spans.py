"""The spans of real runs."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.run import RunConfig, Runner

from .scenarios import World, nested_agent, tool_beside_handoff

pytest.importorskip("opentelemetry.sdk", reason="the package opentelemetry-sdk is not installed")

from .test_tracing import spans, told

__all__ = ["spans"]


@pytest.mark.parametrize("way", ["plain", "streamed"])
async def test_a_run_with_a_tool_and_a_handoff(spans: Any, way: str) -> None:
    if way == "plain":
        await Runner.run(tool_beside_handoff(World()), "go")
    else:
        async for _ in Runner.run_streamed(tool_beside_handoff(World()), "go").stream_events():
            pass
    assert [(name, parent) for name, parent, _ in told(spans)] == [
        ("chat ScriptedModel", "invoke_agent A"),
        ("execute_tool look", "invoke_agent A"),
        ("invoke_agent A", "invoke_workflow Agent workflow"),
        ("chat ScriptedModel", "invoke_agent B"),
        ("invoke_agent B", "invoke_workflow Agent workflow"),
        ("invoke_workflow Agent workflow", None),
    ]


async def test_a_run_inside_a_tool(spans: Any) -> None:
    await Runner.run(nested_agent(World()), "go", run_config=RunConfig(workflow_name="Outer"))
    parents = {name: parent for name, parent, _ in told(spans)}
    assert parents["invoke_agent Inner"] == "invoke_workflow Outer"
    assert ("invoke_workflow Outer", "execute_tool ask") in [(name, parent) for name, parent, _ in told(spans)]


async def test_a_run_without_spans(spans: Any) -> None:
    await Runner.run(nested_agent(World()), "go", run_config=RunConfig(tracing_disabled=True))
    assert told(spans) == []
