"""Spans of a run, by OpenTelemetry's conventions for generative AI. Needs the package opentelemetry-sdk.

Run it with `python docs/examples/spans.py`.
"""

import asyncio

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext

from antiphon import Agent, RunConfig, Runner, function_tool


@function_tool
def get_weather(city: str) -> str:
    """Return the weather in a city."""
    return f"21 degrees and sun in {city}"


agent = Agent(name="Weather desk", model="replay/tools", tools=[get_weather])


def show(spans: list[ReadableSpan], parent: SpanContext | None = None, depth: int = 0) -> None:
    """Print the spans as a tree, in the order in which they began."""
    for span in sorted((one for one in spans if one.parent == parent), key=lambda one: one.start_time or 0):
        tokens = (span.attributes or {}).get("gen_ai.usage.output_tokens")
        print("  " * depth + span.name + (f" ({tokens} tokens)" if tokens else ""))
        show([one for one in spans if one is not span], span.get_span_context(), depth + 1)


def main() -> None:
    """Run once, with an SDK that keeps the spans: yours sends them somewhere."""
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    trace.set_tracer_provider(provider)
    config = RunConfig(workflow_name="Weather", group_id="conversation-7")
    asyncio.run(Runner.run(agent, "How warm is it in Paris?", run_config=config))
    show(list(kept.get_finished_spans()))


if __name__ == "__main__":
    main()
