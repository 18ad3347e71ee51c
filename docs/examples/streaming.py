"""Streaming to a terminal: the text as it comes, what the tools do, and how far they are.

    python docs/examples/streaming.py
"""

import asyncio
from typing import Any

from antiphon import Agent, Runner, StreamEvent, ToolContext, function_tool


@function_tool
async def get_weather(context: ToolContext[Any], city: str) -> str:
    """Return the weather in a city."""
    for percent in (0, 50, 100):
        context.report({"percent": percent})  # from any thread; who reads the stream gets it at once
        await asyncio.sleep(0.01)
    return f"21 degrees and sun in {city}"


agent = Agent(name="Weather desk", model="replay/tools", tools=[get_weather])


def show(event: StreamEvent) -> None:
    """Print one event: of the run, of a tool that runs, or of the model's own stream."""
    match event.type:
        case "agent_updated_stream_event":
            print(f"[{event.new_agent.name}]")
        case "run_item_stream_event" if event.name == "tool_called":
            print(f"  {event.item.tool_name}({event.item.raw_item.arguments})")
        case "run_item_stream_event" if event.name == "tool_output":
            print(f"  -> {event.item.output}")
        case "tool_progress_stream_event":
            print(f"  {event.tool_name}: {event.data['percent']} %")
        case "raw_response_event" if event.data.type == "response.output_text.delta":
            print(event.data.delta, end="", flush=True)
        case _:
            pass


async def main() -> None:
    """Run, and show each event as it comes. Leaving the block early stops the run."""
    result = Runner.run_streamed(agent, "How warm is it in Paris?")
    async with result.stream_events() as events:
        async for event in events:
            show(event)
    print(f"\n{result.current_turn} turns, {result.context_wrapper.usage.total_tokens} tokens")


if __name__ == "__main__":
    asyncio.run(main())
