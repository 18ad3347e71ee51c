"""The bench itself: that its inputs are what they are called, that all subjects convert the same, that no row is lost."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from .__main__ import app
from .goals import GOALS, GROUPS, Cell, Goal, Sense
from .streams import collected, text_of
from .subjects import SUBJECTS
from .workloads import WORKLOADS, data_lines, delta_text, expected_text, prebuilt

SMALL = 0.01
CELLS = sorted(
    {figure for goal in GOALS for figure in (goal.ours, goal.peer) if isinstance(figure, Cell)},
    key=lambda cell: (cell.workload, cell.subject),
)
COUNTS = {"W1": 2_000, "W1h": 2_000, "W2": 20_000, "W3": 100_000, "W6": 2_000, "W7": 200, "W5s": 128 * 1024 // 8 + 1}


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell.workload}-{cell.subject}")
def test_each_subject_carries_the_whole_text(cell: Cell) -> None:
    subject, workload = SUBJECTS[cell.subject], WORKLOADS[cell.workload]
    if reason := subject.missing():
        pytest.skip(reason)
    load = prebuilt(workload, SMALL, objects=subject.reads == "objects", wire=subject.reads == "wire")
    with asyncio.Runner() as runner:
        assert text_of(collected(subject.prepare(), load, runner)) == expected_text(workload, SMALL)


def test_a_quick_run_has_every_row(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    done = CliRunner().invoke(app, ["--quick", "--json", str(file)])
    assert done.exit_code == 0, done.output
    rows = json.loads(file.read_text())["rows"]
    assert [(row["goal"], row["workload"], row["target"]) for row in rows] == [
        (goal.letter, goal.workload, goal.target) for goal in GOALS
    ]
    assert all(row["note"] if row["ratio"] is None else row["ratio"] > 0 for row in rows)
    lines = [line for line in done.output.splitlines() if line.startswith("│")]
    assert [line.split()[1] for line in lines if len(line.split("│")[1].strip()) == 1] == [
        goal.letter for goal in GOALS
    ]


@pytest.mark.parametrize("name", COUNTS)
def test_a_workload_has_the_deltas_that_it_says(name: str) -> None:
    workload = WORKLOADS[name]
    deltas = [delta for delta, _ in workload.choices(workload.size)]
    assert len(deltas) == COUNTS[name]
    if "content" in deltas[0]:
        assert sum(map(len, map(delta_text, deltas))) / len(deltas) == pytest.approx(4, abs=0.5)
        assert all(delta_text(delta).strip() for delta in deltas)


def test_the_mixed_workload_has_about_five_thousand_deltas() -> None:
    workload = WORKLOADS["W4"]
    assert sum(1 for _ in workload.choices(workload.size)) == pytest.approx(5_000, abs=5)


@pytest.mark.parametrize(("name", "kilobytes"), [("W5s", 128), ("W5q", 512), ("W5", 2048)])
def test_arguments_are_json_of_their_size(name: str, kilobytes: int) -> None:
    arguments = expected_text(WORKLOADS[name], 1.0)
    assert len(arguments) == kilobytes * 1024
    assert json.loads(arguments).keys() == {"entry"}


def test_inputs_are_the_same_each_time() -> None:
    assert list(data_lines(WORKLOADS["W6"], SMALL)) == list(data_lines(WORKLOADS["W6"], SMALL))


def test_every_workload_is_in_one_group() -> None:
    assert sorted(name for group in GROUPS for name in group) == sorted(WORKLOADS)


@pytest.mark.parametrize(
    ("sense", "ours", "peer", "verdict"),
    [
        (Sense.FASTER, 1.0, 10.0, "yes"),
        (Sense.FASTER, 1.0, 9.5, "within 10 %"),
        (Sense.FASTER, 1.0, 8.9, "no"),
        (Sense.COST, 10.0, 1.0, "yes"),
        (Sense.COST, 10.9, 1.0, "within 10 %"),
        (Sense.COST, 11.5, 1.0, "no"),
    ],
)
def test_a_verdict_follows_from_the_target(sense: Sense, ours: float, peer: float, verdict: str) -> None:
    goal = Goal("X", "W1", Cell("W1", "ours.sse"), Cell("W1", "floor"), sense, target=10)
    assert goal.verdict(goal.ratio(ours, peer)) == verdict


def test_objects_equal_those_of_the_sdk() -> None:
    chunk_type = pytest.importorskip("openai.types.chat").ChatCompletionChunk
    for name in ("W4", "W6"):
        load = prebuilt(WORKLOADS[name], SMALL, objects=True, wire=False)
        raw = (json.loads(line) for line in data_lines(WORKLOADS[name], SMALL))
        assert list(load.chunks) == [chunk_type.construct(**chunk) for chunk in raw]
