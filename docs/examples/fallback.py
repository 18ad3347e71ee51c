"""A chain of models: where one fails before it has said anything, the next one is asked.

Run it with `python docs/examples/fallback.py`.
"""

import asyncio
import logging
import sys

from antiphon import Agent, FallbackModel, RateLimited, Runner, ServerFailed

CHAIN = ["replay/rate-limit", "replay/bad-gateway", "replay/text"]  # the first two only fail


async def main() -> None:
    """Run once on the chain, and once on a chain that takes only some failures for a reason to go on."""
    agent = Agent(name="Singer", model=FallbackModel(CHAIN))
    result = await Runner.run(agent, "good evening")
    print(result.final_output)
    print(f"{result.context_wrapper.usage.requests} requests")

    strict = agent.clone(model=FallbackModel(CHAIN, on=(RateLimited,)))
    try:
        await Runner.run(strict, "good evening")
    except ServerFailed as error:
        print(f"{type(error).__name__}: status {error.status_code}")


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stdout, format="%(levelname)s: %(message)s")
    asyncio.run(main())
