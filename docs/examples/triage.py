"""Triage: one agent reads the request and hands it to the one that can do it.

Run it with `python docs/examples/triage.py`.
"""

import asyncio

from antiphon import Agent, RunContextWrapper, Runner, function_tool, handoff

MODEL = "replay/triage"  # a built-in conversation: no key, no network. Any other name is a real model


@function_tool
def refund_order(order_id: str, amount: int) -> str:
    """Pay an order back.

    Args:
        order_id: The number on the invoice.
        amount: How much, in euros.
    """
    return f"{amount} euros for order {order_id} are on their way."


def passed_on(context: RunContextWrapper[list[str]]) -> None:
    """Note that the customer has come to the refund desk: the context is any object of yours."""
    context.context.append("refund desk")


faq = Agent(name="FAQ agent", handoff_description="Answers questions about the shop.", model=MODEL)
refunds = Agent(
    name="Refund agent",
    handoff_description="Pays orders back.",
    instructions="Pay back what the customer asks for, then ask whether there is anything else.",
    model=MODEL,
    tools=[refund_order],
)
triage = Agent(
    name="Triage agent",
    instructions="Find out what the customer wants, and hand over to the agent that does it.",
    model=MODEL,
    handoffs=[faq, handoff(refunds, on_handoff=passed_on)],
)


async def main() -> None:
    """Run one request, and tell who did what."""
    visited: list[str] = []
    result = await Runner.run(triage, "Order A-17 arrived broken. I want my 42 euros back.", context=visited)
    for item in result.new_items:
        print(f"{item.agent.name:13} {item.type}")
    print(f"\n{result.last_agent.name}: {result.final_output}")
    print(f"{result.context_wrapper.usage.requests} requests; went to: {', '.join(visited)}")


if __name__ == "__main__":
    asyncio.run(main())
