"""Agents as tools: one agent stays in charge, and asks another as it would call a function.

Run it with `python docs/examples/agents_as_tools.py`.
"""

import asyncio

from antiphon import Agent, AgentToolStreamEvent, Runner, function_tool


@function_tool
def get_weather(city: str) -> str:
    """Return the weather in a city."""
    return f"21 degrees and sun in {city}"


@function_tool
def next_train(city: str) -> str:
    """Return when the next train to a city leaves."""
    return f"The next train to {city} leaves at 10:15."


def told(event: AgentToolStreamEvent) -> None:
    """Print what the inner agent does while the outer one waits for it."""
    inner = event["event"]
    if inner.type == "run_item_stream_event":
        print(f"  {event['agent'].name}: {inner.name}")


weather = Agent(name="Weather desk", model="replay/tools", tools=[get_weather])
concierge = Agent(
    name="Concierge",
    instructions="Plan the guest's day. Ask the weather desk, and look for a train.",
    model="replay/concierge",
    tools=[weather.as_tool("weather_desk", "Ask about the weather.", on_stream=told), next_train],
)


async def main() -> None:
    """Run the outer agent; what the inner one says is the output of a tool."""
    result = await Runner.run(concierge, "I am going to Paris today.")
    for item in result.new_items:
        print(item.type)
    print(f"\n{result.final_output}")
    print(f"{result.context_wrapper.usage.requests} requests, those of the inner agent included")


if __name__ == "__main__":
    asyncio.run(main())
