"""A run that may be killed at any time: `python -m tests.run.kill_child DIRECTORY`. Each state is kept in a file.

Its tools write what they do into a database, under the id of the call: the effect of a call is there once, however
often it is made.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

from antiphon.agent import Agent
from antiphon.memory import SQLiteSession
from antiphon.run import Runner
from antiphon.run_state import RunState
from antiphon.stream_events import AgentUpdatedStreamEvent, RunItemStreamEvent
from antiphon.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from antiphon.tool import function_tool
from antiphon.tool_context import ToolContext

TURNS = 8


def built(folder: Path) -> Agent[Any]:
    """Return the agent. What its model says follows from how many calls were answered."""

    def write(ctx: ToolContext[Any]) -> str:
        with sqlite3.connect(folder / "effects.db", timeout=30) as effects:
            effects.execute("insert into made values (?)", (ctx.tool_call_id,))
            effects.execute("insert or ignore into effects values (?)", (ctx.tool_call_id,))
        return f"wrote {ctx.tool_call_id}"

    free = function_tool(write, name_override="free")
    gated = function_tool(write, name_override="gated", needs_approval=True)

    async def answer(call: ModelCall) -> Any:
        await asyncio.sleep(0.004)
        turn = sum(item.get("type") == "function_call_output" for item in call.input) // 2
        if turn == TURNS:
            return [assistant_message("done", item_id="msg_done")]
        return [
            function_call(name, {}, call_id=f"call_{turn}_{name}", item_id=f"fc_{turn}_{name}")
            for name in ("free", "gated")
        ]

    return Agent("A", model=ScriptedModel([ModelStep.respond(answer)] * (TURNS + 1)), tools=[free, gated])


def keep(folder: Path, state: RunState[Any]) -> None:
    """Put a state in the place of the one before, whole or not at all."""
    new = folder / "state.new"
    new.write_text(state.to_string())
    os.replace(new, folder / "state.json")


async def main(folder: Path) -> None:
    """Go on from the last state, to the end."""
    with sqlite3.connect(folder / "effects.db", timeout=30) as effects:
        effects.execute("create table if not exists made (call_id text)")
        effects.execute("create table if not exists effects (call_id text primary key)")
    agent = built(folder)
    session = SQLiteSession("s", folder / "session.db")
    stored = folder / "state.json"
    start: Any = await RunState.from_string(agent, stored.read_text()) if stored.exists() else "go"
    begun = False
    while True:
        result = Runner.run_streamed(agent, start, session=session, max_turns=None)
        async for event in result.stream_events():
            if not begun and not isinstance(event, AgentUpdatedStreamEvent):
                begun = True
                print("begins", flush=True)  # who kills it waits for this: all is imported now
            if not isinstance(event, RunItemStreamEvent) or event.name == "tool_output":
                keep(folder, result.to_state())
        if not result.interruptions:
            break
        start = result.to_state()
        for item in result.interruptions:
            start.approve(item)
        keep(folder, start)
    (folder / "output").write_text(str(result.final_output))
    session.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
