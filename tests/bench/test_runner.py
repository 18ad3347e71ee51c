"""The bench of the runner: both sides do the same, and nothing of a run stays behind."""

from __future__ import annotations

import gc
from collections import Counter
from typing import Any

import pytest

from antiphon import RunResultStreaming

from .runner import CASES, Case, Ready, Script, crowds, ours, peer, script, told

SMALL = {name: Case(min(case.turns, 3), case.streamed, min(case.deltas, 5)) for name, case in CASES.items()}


def brought(result: Any) -> list[str]:
    return [item.type for item in result.new_items]


@pytest.mark.parametrize("name", SMALL)
async def test_both_sides_bring_the_same(name: str) -> None:
    pytest.importorskip("agents", reason="it is compared with openai-agents")
    said = await script(SMALL[name])
    mine, theirs = await ours(said), await peer()(said)
    calls = ["tool_call_item", "tool_call_output_item"] * (said.case.turns - 1)
    assert brought(mine) == brought(theirs) == [*calls, "message_output_item"]
    assert mine.final_output == theirs.final_output == "done"


async def test_a_longer_stream_has_so_many_deltas_more() -> None:
    def deltas(said: Script) -> list[int]:
        return [sum(event.type.endswith(".delta") for event in events) for events in said.events]

    short, long = await script(Case(3, True)), await script(Case(3, True, 1000))
    assert deltas(long) == [count + 1000 for count in deltas(short)]


def of_runs() -> int:
    """Return how many things there are that belong to a run."""
    gc.collect()
    kinds = Counter(type(one) for one in gc.get_objects())
    return kinds[RunResultStreaming] + kinds[Ready]


async def test_nothing_of_a_crowd_stays() -> None:
    said = await script(Case(3, True, 5))
    before = of_runs()
    assert await crowds(ours, said, 30, 3, of_runs) == [before] * 3


@pytest.mark.parametrize(("ratio", "verdict"), [(4.0, "yes"), (3.9, "NO")])
def test_a_line_says_whether_the_goal_is_met(ratio: float, verdict: str) -> None:
    assert told("plain", [ratio] * 3) == (
        f"{'plain':42} {ratio:5.1f} times less CPU ({ratio:.1f} to {ratio:.1f}; ≥ 4: {verdict})"
    )
