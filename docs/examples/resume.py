"""Approvals, the second process: a person has decided, and the run goes on from the file.

    python docs/examples/resume.py yes|no [FILE]
"""

import asyncio
import sys
from pathlib import Path

from orders import agent

from antiphon import Runner, RunState


async def main(answer: str, file: Path) -> None:
    """Decide about each call that waits, go on, and tell how it ended."""
    state = await RunState.from_string(agent, file.read_text(encoding="utf-8"))
    for call in state.get_interruptions():
        if answer == "yes":
            state.approve(call)
        else:
            state.reject(call, rejection_message="The shop does not pay this back.")
    result = await Runner.run(agent, state)
    print(result.final_output)
    file.unlink()


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in ("yes", "no"):
        sys.exit("usage: resume.py yes|no [FILE]")
    asyncio.run(main(sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else "run.json")))
