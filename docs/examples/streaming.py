"""Streaming to a terminal: the text as it comes, what the tools do, and how far they are.

Run it with `python docs/examples/streaming.py`.
"""

import asyncio
from typing import Any

from antiphon import (
    Agent,
    AgentUpdatedStreamEvent,
    RawResponsesStreamEvent,
    RunItemStreamEvent,
    Runner,
    StreamEvent,
    ToolCallItem,
    ToolCallOutputItem,
    ToolContext,
    ToolProgressStreamEvent,
    function_tool,
)


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
    match event:
        case AgentUpdatedStreamEvent(new_agent=agent):
            print(f"[{agent.name}]")
        case RunItemStreamEvent(item=ToolCallItem() as call):
            print(f"  {call.tool_name}({call.raw_item.arguments})")
        case RunItemStreamEvent(item=ToolCallOutputItem(output=output)):
            print(f"  -> {output}")
        case ToolProgressStreamEvent(data=data, tool_name=name):
            print(f"  {name}: {data['percent']} %")
        case RawResponsesStreamEvent(data=data) if data.type == "response.output_text.delta":
            print(data.delta, end="", flush=True)
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
