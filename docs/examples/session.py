"""A session: what was said is in a SQLite file, and the next run reads it, in this process or another.

Run it with `python docs/examples/session.py [FILE]`.
"""

import asyncio
import sys
from typing import Any

from antiphon import Agent, RunContextWrapper, RunHooks, Runner, SQLiteSession

agent = Agent(name="Archivist", instructions="Answer in one sentence.", model="replay/text")


class Asked(RunHooks[Any]):
    """Prints what the model is given."""

    async def on_llm_start(
        self, context: RunContextWrapper[Any], agent: Agent[Any], system_prompt: str | None, input_items: list[Any]
    ) -> None:
        print(f"{agent.name} is given: {' | '.join(item['role'] for item in input_items)}")


async def main(file: str) -> None:
    """Run twice in one conversation."""
    session = SQLiteSession("ada", file)
    for question in ("What is an antiphon?", "And who sings it?"):
        result = await Runner.run(agent, question, session=session, hooks=Asked())
        print(result.final_output)
    print(f"{len(await session.get_items())} items are kept")
    session.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "conversations.db"))
