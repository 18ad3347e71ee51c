"""Spans of a run for OpenTelemetry, by its conventions for generative AI.

    invoke_workflow > invoke_agent > chat | execute_tool

Only the API package is used: without an SDK in the process nothing is made and nothing costs. What was said is in the
spans only where OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is true and the run does not forbid it. Spans are
tied to their parents by hand and never made current across a `yield`: the reader of a stream may be another task.
Source: OpenTelemetry semantic conventions for generative AI, agent and client spans (status: development).
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from antiphon.stream.accumulate import plain
from antiphon.stream.chunk import fields, whole_characters

from .tool_outputs import words_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from opentelemetry.context import Context
    from opentelemetry.trace import Span as OpenSpan
    from opentelemetry.trace import Tracer

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

Value: TypeAlias = "str | int | float | bool | Sequence[str]"
Attributes: TypeAlias = "Mapping[str, Value | None]"

# setting of a model -> attribute of its span
SETTINGS: dict[str, str] = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "max_tokens": "gen_ai.request.max_tokens",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
}
# status of a response -> what its only choice ended with, in the words of the conventions
FINISHES: dict[str, str] = {"completed": "stop", "max_output_tokens": "length", "content_filter": "content_filter"}


@dataclass(frozen=True, slots=True)
class Span:
    """A span that is open. Without an SDK all that it is told goes nowhere."""

    span: OpenSpan | None
    tracing: Tracing

    def set(self, attributes: Attributes) -> None:
        """Add attributes; those that are None are left out."""
        if self.span is not None:
            self.span.set_attributes({name: value for name, value in attributes.items() if value is not None})

    def content(self, name: str, value: Any) -> None:
        """Add what was said, as JSON text, where that is wanted."""
        if self.span is not None and self.tracing.with_content and value is not None:
            self.span.set_attribute(name, whole_characters(value if isinstance(value, str) else _json(value)))

    def responded(self, response: Any) -> None:
        """Add what a model call came to: a `ModelResponse`."""
        if self.span is None:
            return
        usage = response.usage
        reason = str(response.incomplete_reason or response.status)
        called = any(str(fields(item).get("type")).endswith("_call") for item in response.output)
        self.set(
            {
                "gen_ai.response.id": response.response_id,
                "gen_ai.response.finish_reasons": ["tool_call" if called else FINISHES.get(reason, reason)],
                "gen_ai.usage.input_tokens": usage.input_tokens,
                "gen_ai.usage.output_tokens": usage.output_tokens,
                "gen_ai.usage.cache_read.input_tokens": usage.input_tokens_details.cached_tokens or None,
                "gen_ai.usage.reasoning.output_tokens": usage.output_tokens_details.reasoning_tokens or None,
            }
        )
        self.content("gen_ai.output.messages", response.output)

    @property
    def inside(self) -> Tracing:
        """The tracing of what happens inside this span."""
        if self.span is None:
            return self.tracing
        from opentelemetry.trace import set_span_in_context

        return Tracing(self.tracing.tracer, self.tracing.with_content, set_span_in_context(self.span))

    def current(self) -> AbstractContextManager[Any]:
        """Return a context in which this span is the current one, for code that makes spans of its own. No `yield`
        may stand in it."""
        if self.span is None:
            return nullcontext()
        from opentelemetry.trace import use_span

        return use_span(self.span, record_exception=False, set_status_on_exception=False)


@dataclass(frozen=True, slots=True)
class Tracing:
    """Makes the spans of one run. `tracer` is None where there are none."""

    tracer: Tracer | None = None
    with_content: bool = False
    parent: Context | None = None

    @classmethod
    def start(cls, *, disabled: bool = False, with_content: bool = True) -> Tracing:
        """Return the tracing of a run: off where it is disabled or the process has no SDK."""
        if disabled or _disabled:
            return OFF
        from opentelemetry import trace

        provider = trace.get_tracer_provider()
        if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
            return OFF
        from antiphon import __version__

        wanted = os.environ.get(CAPTURE, "").strip().casefold() in ("true", "1", "span_only", "span_and_event")
        return cls(provider.get_tracer("antiphon", __version__), wanted and with_content)

    def workflow(
        self,
        name: str,
        group: str | None = None,
        trace_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> AbstractContextManager[Span]:
        """Return the span of a run. `group` ties runs to one conversation; the rest is the caller's own to find it by."""
        named: Attributes = {
            "gen_ai.workflow.name": name,
            "gen_ai.conversation.id": group,
            "antiphon.trace_id": trace_id,
        }
        more = {f"antiphon.trace_metadata.{key}": _value(value) for key, value in (metadata or {}).items()}
        return self._span("invoke_workflow", name, {**named, **more})

    def agent(self, name: str, description: str | None = None) -> AbstractContextManager[Span]:
        """Return the span of an agent, from where it takes over to where it ends or hands off."""
        held: Attributes = {"gen_ai.agent.name": name, "gen_ai.agent.description": description}
        return self._span("invoke_agent", name, held)

    def model(self, name: str, provider: str, settings: Any, *, streamed: bool) -> AbstractContextManager[Span]:
        """Return the span of a model call."""
        given = {attribute: getattr(settings, setting, None) for setting, attribute in SETTINGS.items()}
        held: Attributes = {
            "gen_ai.request.model": name,
            "gen_ai.provider.name": provider,
            "gen_ai.request.stream": streamed or None,
            **given,
        }
        return self._span("chat", name, held, outward=True)

    def tool(self, name: str, call_id: str | None, description: str | None = None) -> AbstractContextManager[Span]:
        """Return the span of a tool that runs."""
        held: Attributes = {
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": call_id,
            "gen_ai.tool.description": description,
            "gen_ai.tool.type": "function",
        }
        return self._span("execute_tool", name, held)

    def _span(
        self, operation: str, name: str, attributes: Attributes, *, outward: bool = False
    ) -> AbstractContextManager[Span]:
        if self.tracer is None:
            return _NOTHING
        return self._open(self.tracer, operation, name, attributes, outward)

    @contextmanager
    def _open(
        self, tracer: Tracer, operation: str, name: str, attributes: Attributes, outward: bool
    ) -> Generator[Span]:
        from opentelemetry.trace import SpanKind

        held = {key: value for key, value in attributes.items() if value is not None}
        opened = tracer.start_span(
            f"{operation} {name}",
            context=self.parent,
            kind=SpanKind.CLIENT if outward else SpanKind.INTERNAL,
            attributes={"gen_ai.operation.name": operation, **held},
        )
        try:
            yield Span(opened, self)
        except (asyncio.CancelledError, GeneratorExit):
            opened.set_attribute("error.type", "cancelled")
            raise
        except BaseException as error:
            _fail(opened, error, with_content=self.with_content)
            raise
        finally:
            opened.end()


def _fail(span: OpenSpan, error: BaseException, *, with_content: bool) -> None:
    """Say that the span failed. A message may hold what was said, so it is content too."""
    from opentelemetry.trace import StatusCode

    span.set_attribute("error.type", type(error).__qualname__)
    span.set_status(StatusCode.ERROR, whole_characters(words_of(error)) if with_content else None)


def _value(value: Any) -> Value | None:
    """Return what an attribute can hold of a value: a text, a number or a bool as it is, all else as JSON text."""
    if isinstance(value, str):
        return whole_characters(value)
    return value if value is None or isinstance(value, int | float) else _json(value)


def _json(value: Any) -> str:
    """Return a value as JSON text; one that has none, such as a circle, as what it says of itself."""
    try:
        return json.dumps(value, default=_in_json)
    except (ValueError, TypeError, RecursionError):
        return words_of(value)


def _in_json(value: Any) -> Any:
    """Return what stands in JSON for a value that has no form there: its fields, or what it says of itself."""
    held = plain(value)
    return words_of(value) if held is value else held


_disabled = False


def set_tracing_disabled(disabled: bool) -> None:
    """Say for this process that no run makes spans, whatever its configuration says."""
    global _disabled
    _disabled = disabled


OFF = Tracing()
_NOTHING: AbstractContextManager[Span] = nullcontext(Span(None, OFF))
