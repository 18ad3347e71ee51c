"""Approvals, the first process: the run stops before a refund, and its state goes into a file.

Run it with `python docs/examples/approve.py [FILE]`, and then `python docs/examples/resume.py yes [FILE]`.
"""

import asyncio
import sys
from pathlib import Path

from orders import agent

from antiphon import Runner


async def until_it_waits() -> str:
    """Run until a call waits for a decision; return where the run stands, as text."""
    result = await Runner.run(agent, "Please pay order A-17 back.")
    for call in result.interruptions:
        print(f"{call.agent.name} wants to call {call.name}({call.arguments})")
    return result.to_state().to_string()


def main(file: Path) -> None:
    """Keep the run in a file."""
    file.write_text(asyncio.run(until_it_waits()), encoding="utf-8")
    print(f"The run waits in {file.name}.")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "run.json"))
