"""A run with a session in SQLite and approvals, killed wherever it happens to be, and taken up from its last state."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from antiphon.memory import SQLiteSession

from .kill_child import TURNS

ROOT = Path(__file__).parents[2]
KILLS = 10


def child(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.run.kill_child", str(folder)], cwd=ROOT, stdout=subprocess.PIPE
    )


def rows(folder: Path, table: str) -> list[str]:
    with sqlite3.connect(folder / "effects.db") as effects:
        return [call_id for (call_id,) in effects.execute(f"select call_id from {table}")]


def test_killed_and_taken_up(tmp_path: Path) -> None:
    """What was done and kept is not done again, and the session has each item once, calls with their outputs."""
    chance, killed = random.Random(7), 0
    for _ in range(KILLS * 4):
        with child(tmp_path) as running:
            assert running.stdout is not None
            assert running.stdout.readline() in (b"begins\n", b"")
            if killed < KILLS:
                time.sleep(chance.uniform(0.0, 0.12))
                running.kill()
            if running.wait(60) == 0:
                break
            killed += 1
    assert killed > 2  # while it ran
    assert (tmp_path / "output").read_text() == "done"
    calls = [f"call_{turn}_{name}" for turn in range(TURNS) for name in ("free", "gated")]
    assert sorted(rows(tmp_path, "effects")) == sorted(calls)
    assert len(rows(tmp_path, "made")) <= len(calls) + KILLS  # one that was cut off before its state was kept
    session = SQLiteSession("s", tmp_path / "session.db")
    assert [_word(item) for item in asyncio.run(session.get_items())] == [
        "go",
        *(
            word
            for turn in range(TURNS)
            for word in (
                *(f"function_call call_{turn}_{name}" for name in ("free", "gated")),
                *(f"function_call_output call_{turn}_{name}" for name in ("free", "gated")),
            )
        ),
        "message",
    ]
    session.close()


def _word(item: Any) -> str:
    return f"{item['type']} {item['call_id']}" if "call_id" in item else item.get("type") or item["content"]
