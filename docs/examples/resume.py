"""Approvals, the second process: a person has decided, and the run goes on from the file.

Run it with `python docs/examples/resume.py yes|no [FILE]`.
"""

import asyncio
import sys
from pathlib import Path

from orders import agent

from antiphon import Runner, RunState


async def decided(text: str, answer: str) -> str:
    """Decide about each call that waits, and go on; return the final output."""
    state = await RunState.from_string(agent, text)
    for call in state.get_interruptions():
        if answer == "yes":
            state.approve(call)
        else:
            state.reject(call, rejection_message="The shop does not pay this back.")
    return str((await Runner.run(agent, state)).final_output)


def main(answer: str, file: Path) -> None:
    """Take the run up from the file, which is done with then."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        sys.exit(f"no run waits in {file}: each is taken up once; begin one with `python docs/examples/approve.py`")
    print(asyncio.run(decided(text, answer)))
    file.unlink()


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in ("yes", "no"):
        sys.exit("usage: resume.py yes|no [FILE]")
    main(sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else "run.json"))
