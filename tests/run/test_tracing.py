"""Spans of a run: their names, attributes and parents; what is in them only on request; nothing without an SDK."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from antiphon import set_tracing_disabled
from antiphon.models import ModelResponse, ModelSettings, Usage
from antiphon.run.tracing import CAPTURE, OFF, Tracing
from antiphon.testing import assistant_message, function_call

pytest.importorskip("opentelemetry.sdk", reason="the package opentelemetry-sdk is not installed")

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield kept
    provider.shutdown()


def told(kept: InMemorySpanExporter) -> list[tuple[str, str | None, dict[str, Any]]]:
    """Return the finished spans: name, name of the parent, attributes."""
    finished = kept.get_finished_spans()
    names = {one.context.span_id: one.name for one in finished}
    return [(one.name, names.get(one.parent.span_id) if one.parent else None, dict(one.attributes)) for one in finished]


def answer(*output: Any, **more: Any) -> ModelResponse:
    usage = Usage(1, 5, output_tokens=3, total_tokens=8)
    return ModelResponse(list(output), usage, "resp_1", **more)


def test_what_a_run_is_found_by(spans: InMemorySpanExporter) -> None:
    metadata = {"user": "u_1", "try": 2, "beta": True, "tags": ["a", "b"], "nothing": None}
    with Tracing.start().workflow("Help desk", None, "trace_1", metadata):
        pass
    [(name, _, attributes)] = told(spans)
    assert name == "invoke_workflow Help desk"
    assert {key: value for key, value in attributes.items() if key.startswith("antiphon.")} == {
        "antiphon.trace_id": "trace_1",
        "antiphon.trace_metadata.user": "u_1",
        "antiphon.trace_metadata.try": 2,
        "antiphon.trace_metadata.beta": True,
        "antiphon.trace_metadata.tags": '["a", "b"]',
    }


def one_of_each(tracing: Tracing) -> None:
    with tracing.workflow("Help desk", "group_1") as run, run.inside.agent("Triage", "sorts") as agent:
        settings = ModelSettings(temperature=0.5, max_tokens=9)
        with agent.inside.model("qwen3", "vllm", settings, streamed=True) as call:
            call.content("gen_ai.input.messages", [{"role": "user", "content": "my secret"}])
            call.responded(answer(function_call("look", {"q": "my secret"}, call_id="call_1")))
        with agent.inside.tool("look", "call_1", "looks things up") as tool:
            tool.content("gen_ai.tool.call.arguments", '{"q": "my secret"}')


EACH: list[tuple[str, str | None, dict[str, Any]]] = [
    (
        "chat qwen3",
        "invoke_agent Triage",
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "qwen3",
            "gen_ai.provider.name": "vllm",
            "gen_ai.request.stream": True,
            "gen_ai.request.temperature": 0.5,
            "gen_ai.request.max_tokens": 9,
            "gen_ai.response.id": "resp_1",
            "gen_ai.response.finish_reasons": ("tool_call",),
            "gen_ai.usage.input_tokens": 5,
            "gen_ai.usage.output_tokens": 3,
        },
    ),
    (
        "execute_tool look",
        "invoke_agent Triage",
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "look",
            "gen_ai.tool.call.id": "call_1",
            "gen_ai.tool.description": "looks things up",
            "gen_ai.tool.type": "function",
        },
    ),
    (
        "invoke_agent Triage",
        "invoke_workflow Help desk",
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "Triage",
            "gen_ai.agent.description": "sorts",
        },
    ),
    (
        "invoke_workflow Help desk",
        None,
        {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": "Help desk",
            "gen_ai.conversation.id": "group_1",
        },
    ),
]


def test_the_spans_of_a_run_stand_in_each_other_and_hold_no_content(spans: InMemorySpanExporter) -> None:
    one_of_each(Tracing.start())
    assert told(spans) == EACH


@pytest.mark.parametrize(
    ("wanted", "allowed", "is_there"),
    [("true", True, True), ("true", False, False), ("false", True, False), ("", True, False)],
)
def test_content_is_there_where_the_environment_wants_it_and_the_run_allows_it(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, wanted: str, allowed: bool, is_there: bool
) -> None:
    monkeypatch.setenv(CAPTURE, wanted)
    one_of_each(Tracing.start(with_content=allowed))
    assert ("my secret" in str(told(spans))) is is_there


@pytest.mark.parametrize(
    ("response", "reasons"),
    [
        (answer(assistant_message("a")), ("stop",)),
        (answer(status="incomplete", incomplete_reason="max_output_tokens"), ("length",)),
        (answer(status="incomplete", incomplete_reason="content_filter"), ("content_filter",)),
    ],
)
def test_how_a_response_ended_is_told(
    spans: InMemorySpanExporter, response: ModelResponse, reasons: tuple[str, ...]
) -> None:
    with Tracing.start().model("m", "p", ModelSettings(), streamed=False) as call:
        call.responded(response)
    assert told(spans)[0][2]["gen_ai.response.finish_reasons"] == reasons


@pytest.mark.parametrize(
    ("error", "kind"), [(ValueError("my secret"), "ValueError"), (asyncio.CancelledError(), "cancelled")]
)
def test_an_error_is_told_by_its_kind_alone(spans: InMemorySpanExporter, error: BaseException, kind: str) -> None:
    with pytest.raises(type(error)), Tracing.start().tool("look", None):
        raise error
    (finished,) = spans.get_finished_spans()
    assert finished.attributes is not None
    assert (finished.attributes["error.type"], finished.status.description, finished.events) == (kind, None, ())


def test_code_inside_finds_the_span_as_the_current_one(spans: InMemorySpanExporter) -> None:
    with Tracing.start().tool("look", None) as tool, tool.current():
        trace.get_current_span().set_attribute("mine", 1)
    assert told(spans)[0][2]["mine"] == 1


def test_a_run_that_forbids_it_makes_no_spans(spans: InMemorySpanExporter) -> None:
    assert Tracing.start(disabled=True) is OFF
    one_of_each(OFF)
    assert told(spans) == []


def test_without_an_sdk_nothing_is_made() -> None:
    code = "from antiphon.run.tracing import OFF, Tracing\nassert Tracing.start() is OFF"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_process_can_forbid_all_spans(spans: InMemorySpanExporter) -> None:
    set_tracing_disabled(True)
    try:
        assert Tracing.start() is OFF
    finally:
        set_tracing_disabled(False)
    assert Tracing.start() is not OFF
