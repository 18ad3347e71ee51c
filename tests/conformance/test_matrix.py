"""The matrix: what a column keeps of a report, what the page says, and that the page in the docs is what is measured."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import antiphon.cli
from antiphon.errors import BadInput
from antiphon_conformance.baseline import parse_baseline
from antiphon_conformance.case import load_cases
from antiphon_conformance.matrix import (
    Column,
    Counts,
    Measured,
    baseline_of,
    cases_of,
    column_of,
    deviations_of,
    joined,
    measure_own,
    measure_recordings,
    read_measured,
    write_measured,
)
from antiphon_conformance.matrix_page import page, table
from antiphon_conformance.peers import PEERS
from antiphon_conformance.results import Subject

from .building import message, numbered, stream
from .reporting import GOOD, every_outcome, report_of, run_of

ROOT = Path(__file__).parents[2]
MEASURED = files("antiphon_conformance.peers").joinpath("measured.json").read_text(encoding="utf-8")
CORPUS = ROOT.parent / "shared" / "corpus" / "responses"

REPORT = report_of(
    run_of("text/a", GOOD),
    run_of("text/b", GOOD),
    run_of("text/b", numbered(GOOD[:-1]), form="characters"),
    run_of("text/c", numbered(GOOD[:1] + GOOD[2:-1])),
    *every_outcome()[3:],
)
COLUMN = column_of(REPORT, what="a | b", command="antiphon check it")
OTHER = Column(
    name="other", kind="adapter", version="", what="", command="x", cases=2, clean=2, rules={"SEQ001": Counts(0, 2)}
)


def test_a_column_counts_cases_not_forms() -> None:
    assert (COLUMN.name, COLUMN.kind, COLUMN.version, COLUMN.cases, COLUMN.clean) == (
        "mypackage.stream:convert",
        "adapter",
        "0.3.1",
        3,
        1,
    )
    broken = {code: (count.broken, count.ran) for code, count in COLUMN.rules.items() if count.broken}
    assert broken == {"STR001": (1, 3), "STR003": (2, 3)}


def test_the_table_by_rules_and_by_areas() -> None:
    assert list(table([COLUMN, OTHER])) == [
        "| rule | mypackage.stream:convert | other |",
        "|---|---|---|",
        "| STR001 created-then-in-progress | 1/3 |  |",
        "| STR003 one-terminal-event | 2/3 |  |",
    ]
    areas = list(table([COLUMN, OTHER], by_area=True))
    assert "| SEQ numbering | ✓ | ✓ |" in areas
    assert next(line for line in areas if line.startswith("| STR ")).endswith("| 2/7 |  |")


def test_what_was_measured_is_saved_and_read() -> None:
    measured = Measured(suite="1.0", cases_hash="abc", columns=[COLUMN, OTHER])
    assert read_measured(write_measured(measured), "x") == measured
    assert json.loads(write_measured(measured))["columns"][1]["rules"] == {"SEQ001": [0, 2]}
    with pytest.raises(BadInput, match=r"bad\.json is nothing that"):
        read_measured("{}", "bad.json")


def test_of_a_subject_that_was_measured_twice_the_last_counts() -> None:
    one = Measured(suite="1.0", cases_hash="abc", columns=[COLUMN, OTHER])
    two = Measured(suite="1.0", cases_hash="def", columns=[Column(**{**_fields(OTHER), "clean": 1})])
    assert joined([one, two]) == Measured(suite="1.0", cases_hash="def", columns=[COLUMN, two.columns[0]])
    with pytest.raises(BadInput, match="nothing was measured"):
        joined([])


def _fields(column: Column) -> dict[str, object]:
    return {name: getattr(column, name) for name in column.__struct_fields__}


def test_the_page_says_who_and_what() -> None:
    text = page(Measured(suite="1.0", cases_hash="abc", columns=[COLUMN, OTHER]))
    kept = f"{len(COLUMN.rules) - 2}/{len(COLUMN.rules)}"
    assert f"| mypackage.stream:convert | 0.3.1 | a \\| b | {kept} | 1/3 | `antiphon check it` |" in text
    assert "## Converters" in text
    assert "## Live servers" not in text
    assert text.endswith("\n")


def test_a_baseline_excuses_all_that_is_broken() -> None:
    peer = PEERS[0]
    text = baseline_of(replace(REPORT, subject=Subject(peer.name, "adapter", "9.9")), peer)
    deviations = parse_baseline(text, "x")
    assert tuple(deviations_of(REPORT)) == deviations
    assert {(one.rule, one.case) for one in deviations} == {
        ("STR001", "text/c"),
        ("STR003", "text/b"),
        ("STR003", "text/c"),
    }
    assert cases_of(text) == "sha256:00"
    assert text.count("\n  {") == 3


def test_a_rule_that_breaks_in_many_cases_is_one_line() -> None:
    bad = numbered(stream(message("Hi"))[:-1])
    report = report_of(*(run_of(f"text/{n}", bad) for n in range(20)), run_of("text/x", GOOD))
    assert [(one.rule, one.case) for one in deviations_of(report)] == [("STR003", "*")]
    assert deviations_of(report)[0].reason.startswith("in 20 cases, such as: ")


# --- the page in the docs, and our own column ---------------------------------------------------------------------------


def test_the_page_in_the_docs_is_what_was_measured() -> None:
    """Write it anew with `antiphon matrix --no-peers --with …/peers/measured.json -o docs/peers.md`."""
    assert (ROOT / "docs" / "peers.md").read_text(encoding="utf-8") == page(read_measured(MEASURED, "measured.json"))


def test_our_own_column_is_clean() -> None:
    own = next(one for one in read_measured(MEASURED, "measured.json").columns if one.name == "antiphon")
    assert (own.clean, sum(count.broken for count in own.rules.values())) == (own.cases, 0)
    report = measure_own()
    now = column_of(report, what="", command="")
    assert now.cases == now.clean > 150
    assert len({run.case for run in report.runs}) == len(load_cases())


def test_every_peer_was_measured() -> None:
    names = {one.name for one in read_measured(MEASURED, "measured.json").columns}
    assert {peer.name for peer in PEERS} <= names


# --- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is there, whatever is installed."""
    own = {**antiphon.cli.OWN, "matrix": "antiphon_conformance.commands.matrix:matrix"}
    monkeypatch.setattr(antiphon.cli, "OWN", own)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(antiphon.cli.app, ["matrix", *arguments], env={"COLUMNS": "200", "TERM": "dumb"})


def recorded(folder: Path) -> Path:
    for name, events in (("good", GOOD), ("bad", GOOD[:-1])):
        (folder / name).mkdir(parents=True)
        text = "".join(json.dumps(event) + "\n" for event in events)
        (folder / name / "one.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_recordings_are_measured(tmp_path: Path) -> None:
    result = run("--no-peers", "--recordings", str(recorded(tmp_path / "servers")), "--save", str(tmp_path / "m.json"))
    assert result.exit_code == 0
    assert "| STR003 one-terminal-event | 1/1 | ✓ |" in result.stdout
    again = run("--no-peers", "--with", str(tmp_path / "m.json"), "-o", str(tmp_path / "page.md"))
    assert (again.exit_code, again.stdout) == (0, "")
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == result.stdout


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the recorded streams are not beside this checkout")
def test_the_recorded_servers() -> None:
    columns = {one.subject.name: column_of(one, what="", command="") for one in measure_recordings(CORPUS)}
    assert columns["azure-openai"].clean == columns["azure-openai"].cases
    assert columns["openrouter"].rules["ITM007"].broken > 0


def test_the_peers_are_listed() -> None:
    result = run("--list")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == [peer.name for peer in PEERS]


BAD_USE: dict[str, tuple[tuple[str, ...], str]] = {
    "no such peer": (("nobody",), "no peer is called 'nobody'"),
    "no folder": (("--no-peers", "--recordings", "missing"), "--recordings missing: there is no such folder"),
    "nothing saved there": (("--no-peers", "--with", "missing.json"), "cannot read missing.json"),
    "no model": (("--no-peers", "--url", "http://127.0.0.1:1/v1"), "--url needs --model"),
}


@pytest.mark.parametrize("name", BAD_USE)
def test_bad_use_exits_2(name: str) -> None:
    arguments, said = BAD_USE[name]
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_an_empty_folder_is_bad_use(tmp_path: Path) -> None:
    result = run("--no-peers", "--recordings", str(tmp_path))
    assert result.exit_code == 2
    assert "holds no folder with recorded event streams" in result.stderr


def test_nothing_measured_exits_3() -> None:
    result = run("--no-peers")
    assert (result.exit_code, result.stderr) == (3, "nothing was measured\n")
