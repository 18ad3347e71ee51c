"""The agent of `approve.py` and `resume.py`: it may look orders up, but a refund waits for a person."""

from antiphon import Agent, function_tool


@function_tool
def find_order(order_id: str) -> str:
    """Look an order up."""
    print(f"  (find_order runs for {order_id})")
    return f"Order {order_id}: one cope, 42 euros, paid."


@function_tool(needs_approval=True)
def refund_order(order_id: str, amount: int) -> str:
    """Pay an order back."""
    print(f"  (refund_order runs for {order_id})")
    return f"{amount} euros for order {order_id} are on their way."


agent = Agent(
    name="Order desk",
    instructions="Look the order up before you pay it back.",
    model="replay/approval",
    tools=[find_order, refund_order],
)
