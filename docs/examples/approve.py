"""Approvals, the first process: the run stops before a refund, and its state goes into a file.

    python docs/examples/approve.py [FILE]          # then: python docs/examples/resume.py yes [FILE]
"""

import asyncio
import sys
from pathlib import Path

from orders import agent

from antiphon import Runner


async def main(file: Path) -> None:
    """Run until a call waits, and keep where the run stands."""
    result = await Runner.run(agent, "Please pay order A-17 back.")
    for call in result.interruptions:
        print(f"{call.agent.name} wants to call {call.name}({call.arguments})")
    file.write_text(result.to_state().to_string(), encoding="utf-8")
    print(f"The run waits in {file.name}.")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1] if len(sys.argv) > 1 else "run.json")))
