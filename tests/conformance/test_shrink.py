"""`shrink`: what is left still breaks the same, and nothing in it can be left out; `mended`: what is left fits."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

import antiphon.cli
from antiphon.errors import BadInput
from antiphon_conformance import Level, check
from antiphon_conformance.judged import Same, gist, judge_answer, judge_events, kind_of
from antiphon_conformance.mending import EVENT_PASSES, mended
from antiphon_conformance.shrink import Budget, Progress, Shrunk, Size, minimise, shrink

from .broken import BROKEN, Broken
from .building import (
    Events,
    call,
    chunk,
    custom_call,
    fragment,
    message,
    numbered,
    reasoning,
    searched,
    stream,
    usage_chunk,
)

bounded = settings(
    max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)


# --- the search --------------------------------------------------------------------------------------------------------


@bounded
@given(st.lists(st.integers(0, 9), max_size=30), st.sets(st.integers(0, 9), max_size=3))
def test_what_is_left_is_needed(atoms: list[int], needed: set[int]) -> None:
    kept = minimise(atoms, lambda some: needed & set(atoms) <= set(some))
    assert sorted(kept) == sorted(needed & set(atoms))


@bounded
@given(st.lists(st.integers(0, 99), min_size=1, max_size=60), st.integers(0, 200))
def test_no_atom_can_be_left_out_alone(atoms: list[int], floor: int) -> None:
    def breaks(some: Sequence[int]) -> bool:
        return sum(some) >= min(floor, sum(atoms))

    kept = minimise(atoms, breaks)
    assert breaks(kept)
    assert [n for n in range(len(kept)) if breaks(kept[:n] + kept[n + 1 :])] == []


JSON = st.recursive(
    st.one_of(st.none(), st.integers(0, 9), st.text("ab", max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=8,
)


def _holds(value: Any, wanted: str) -> bool:
    match value:
        case str():
            return wanted in value
        case dict():
            return any(_holds(one, wanted) for one in value.values())
        case list():
            return any(_holds(one, wanted) for one in value)
        case _:
            return False


@bounded
@given(st.lists(JSON, max_size=5))
def test_fields_and_texts_are_left_out_too(values: list[Any]) -> None:
    whole = [*values, {"c": {"b": ["xx-needle-xx", 7]}}, *values]
    shrunk = shrink(whole, lambda some: _holds(some, "needle"))
    assert json.dumps(shrunk.stream) == '[{"c": {"b": ["needle"]}}]'
    assert shrunk.smallest
    assert shrunk == shrink(whole, lambda some: _holds(some, "needle"))
    assert shrunk.before == Size.of(whole)
    assert shrunk.after == Size(1, 22)


LONG = list(range(200))


def _ends(at: int) -> Callable[[Sequence[int]], bool]:
    """Return what is interrupted at the nth question."""
    asked = count()

    def breaks(some: Sequence[int]) -> bool:
        if next(asked) == at:
            raise KeyboardInterrupt
        return 3 in some and 150 in some

    return breaks


def test_an_interrupt_keeps_the_best_so_far() -> None:
    shrunk = shrink(LONG, _ends(12))
    assert shrunk.stopped == "interrupted"
    assert {3, 150} <= set(shrunk.stream)
    assert 2 < len(shrunk.stream) < 200
    assert shrunk.tries == 12


def test_the_budget_of_tries_is_kept() -> None:
    told: list[Progress] = []
    shrunk = shrink(LONG, _ends(-1), budget=Budget(tries=9), tell=told.append)
    assert (shrunk.tries, shrunk.stopped, shrunk.smallest) == (9, "the budget of 9 tries is spent", False)
    assert {3, 150} <= set(shrunk.stream)
    assert [one.tries for one in told] == list(range(1, 10))
    assert {one.stage for one in told} == {"values"}
    assert told[-1].size.values < 200


def test_the_budget_of_time_is_kept() -> None:
    seconds = count()
    shrunk = shrink(LONG, _ends(-1), budget=Budget(seconds=5), clock=lambda: next(seconds))
    assert (shrunk.tries, shrunk.stopped) == (4, "the budget of 5 s is spent")


def test_what_does_not_break_is_refused() -> None:
    with pytest.raises(BadInput, match="nothing to shrink"):
        shrink(LONG, lambda some: False)


BUDGETS: dict[str, Budget] = {
    "500": Budget(500, 60.0),
    "30s": Budget(5000, 30.0),
    "1.5m": Budget(5000, 90.0),
    "500,30s": Budget(500, 30.0),
    " 2m , 7": Budget(7, 120.0),
}


@pytest.mark.parametrize("text", BUDGETS)
def test_a_budget_is_read(text: str) -> None:
    assert Budget.parse(text) == BUDGETS[text]


@pytest.mark.parametrize("text", ["", "x", "5,5", "3s,2m", "1.5", "-1", "5h", ","])
def test_a_budget_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="500,30s"):
        Budget.parse(text)


# --- event streams -----------------------------------------------------------------------------------------------------

GOOD: dict[str, Events] = {
    "all kinds": stream(
        reasoning(("hm", "m"), ("so",)),
        message("Hel", "lo", refusal=("no",)),
        call("f", '{"a"', ":1}"),
        custom_call("g", "la", "la"),
    ),
    "links": stream(message("Hel", "lo", links=("a", "b"))),
    "logprobs": stream(message("Hel", "lo", logs=True), call("f", "{", "}")),
    "hosted": stream(searched("tunes"), message("Hi")),
    "raw": stream(reasoning(raw=("hm", "m")), message("Hi")),
    "cut": stream(message("a"), message("b", "c", status="incomplete"), ending="incomplete"),
    "failed": stream(message("a"), ending="failed"),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_stream_without_an_item_is_good(name: str) -> None:
    events = GOOD[name]
    indexes = sorted({event["output_index"] for event in events if "output_index" in event})
    for gone in indexes:
        left = mended(events, [at for at, event in enumerate(events) if event.get("output_index") != gone])
        assert check(left).codes == check(events).codes
        assert len(left[-1]["response"]["output"]) == len(indexes) - 1


@pytest.mark.parametrize("name", GOOD)
def test_a_good_stream_without_a_delta_is_good(name: str) -> None:
    events = GOOD[name]
    for at, event in enumerate(events):
        if event["type"].endswith(".delta") and "logprobs" not in event:
            left = mended(events, [place for place in range(len(events)) if place != at])
            assert _musts(left) == set()


def test_numbers_that_were_wrong_stay_wrong() -> None:
    events = [{**event, "sequence_number": 5} for event in GOOD["links"]]
    assert {event["sequence_number"] for event in mended(events, range(3))} == {5}
    gap = [
        {**event, "output_index": event["output_index"] + 1} if "output_index" in event else event
        for event in GOOD["links"]
    ]
    assert {event.get("output_index") for event in mended(gap, range(2, 5))} == {1}
    assert [event["sequence_number"] for event in mended(numbered(events, 40), range(3))] == [40, 41, 42]


def _musts(events: Events) -> set[str]:
    return {one.code for one in check(events).at(Level.MUST)}


def _around(one: Broken) -> Same:
    findings, _ = judge_events(one.events)
    finding = next(found for found in findings if found.code == one.code)
    return Same.as_in(judge_events, finding, findings)


EVENTS_ALONE = [one for one in BROKEN if not one.given and one.code in check(one.events).codes]


@pytest.mark.parametrize("at", range(0, len(EVENTS_ALONE), 3))
def test_a_broken_stream_shrinks_to_one_that_breaks_the_same(at: int) -> None:
    one = EVENTS_ALONE[at]
    same = _around(one)
    shrunk = shrink(one.events, same, budget=Budget(tries=60), first=EVENT_PASSES)
    assert shrunk.tries <= 60
    assert shrunk.after.characters <= shrunk.before.characters
    assert same(shrunk.stream)
    assert _musts(shrunk.stream) <= {one.code} | _musts(one.events)


def test_a_fault_among_much_else_is_found() -> None:
    events = stream(*[message("Hel", "lo", "there"), reasoning(("so",)), call("f", "{", "}")] * 4)
    at = next(n for n, event in enumerate(events) if event["type"] == "response.function_call_arguments.done")
    same = Same.as_in(judge_events, *_first(numbered(events[:at] + events[at + 1 :])))
    shrunk = shrink(numbered(events[:at] + events[at + 1 :]), same, first=EVENT_PASSES)
    assert [event["type"].removeprefix("response.") for event in shrunk.stream] == [
        "created",
        "in_progress",
        "output_item.added",
        "function_call_arguments.delta",
        "output_item.done",
        "completed",
    ]
    assert shrunk.smallest


def _first(events: Events) -> tuple[Any, Any]:
    findings, _ = judge_events(events)
    return findings[0], findings


# --- recordings of chunks ----------------------------------------------------------------------------------------------

CALLS = [
    chunk(role="assistant", content=""),
    chunk(content="Let me look. "),
    fragment(0, "call_1", "look_up", '{"q":'),
    fragment(0, None, None, '"x"}'),
    fragment(1, "call_2", "dig", "{}"),
    chunk("tool_calls"),
    usage_chunk(),
]


@pytest.fixture(autouse=True)
def _command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is there, whatever is installed."""
    own = {**antiphon.cli.OWN, "shrink": "antiphon_conformance.commands.shrink:shrink"}
    monkeypatch.setattr(antiphon.cli, "OWN", own)


def run(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(
        antiphon.cli.app, ["shrink", *arguments], input=given, env={"COLUMNS": "200", "TERM": "dumb"}
    )


def jsonl(values: Sequence[Any]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def test_chunks_through_an_adapter(tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"
    file.write_text(jsonl(CALLS), encoding="utf-8")
    result = run(str(file), "--adapter", "tests.conformance.faulty:no_arguments_done", "--json")
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    written = [json.loads(line) for line in (tmp_path / "calls.shrunk.jsonl").read_text(encoding="utf-8").splitlines()]
    assert told == {
        "breaks": True,
        "rule": "CAL001",
        "level": "MUST",
        "message": told["message"],
        "index": told["index"],
        "kind": "chunks",
        "subject": "tests.conformance.faulty:no_arguments_done",
        "before": {"values": 7, "characters": Size.of(CALLS).characters},
        "after": {"values": len(written), "characters": Size.of(written).characters},
        "tries": told["tries"],
        "smallest": True,
        "stopped": "",
        "output": str(tmp_path / "calls.shrunk.jsonl"),
    }
    assert len(written) == 1
    assert Size.of(written).characters < 80
    again = run(str(tmp_path / "calls.shrunk.jsonl"), "--adapter", told["subject"], "--rule", "CAL001", "-o", "-")
    assert again.exit_code == 0
    assert again.stdout == jsonl(written)


def test_an_adapter_that_raises(tmp_path: Path) -> None:
    file = tmp_path / "refusal.jsonl"
    file.write_text(jsonl([*CALLS[:2], chunk(refusal="I must not"), chunk("stop")]), encoding="utf-8")
    result = run(str(file), "--adapter", "tests.conformance.faulty:raises_on_refusal")
    assert result.exit_code == 0
    assert "HAR002" in result.stdout
    written = (tmp_path / "refusal.shrunk.jsonl").read_text(encoding="utf-8")
    assert json.loads(written)["choices"][0]["delta"]["refusal"] in ("I", " ", "m", "u", "s", "t", "n", "o")


BESIDE = """
from antiphon import convert


def forgetful(chunks):
    return [event for event in convert(chunks, events="dict") if event["type"] != "response.function_call_arguments.done"]
"""


def test_an_adapter_beside_which_the_command_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "an_adapter_beside.py").write_text(BESIDE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    result = run("-", "--adapter", "an_adapter_beside:forgetful", "--rule", "CAL001", "-o", "-", given=jsonl(CALLS))
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 1)


def test_events_are_told_from_chunks(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    bad = numbered([event for event in GOOD["all kinds"] if event["type"] != "response.in_progress"])
    file.write_text(jsonl(bad), encoding="utf-8")
    result = run(str(file), "--rule", "created-then-in-progress")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "STR001 created-then-in-progress   MUST   the events"
    assert "nothing more can be left out" in result.stdout
    assert f"antiphon shrink {tmp_path / 'events.shrunk.jsonl'} --rule STR001" in result.stdout
    written = [json.loads(line) for line in (tmp_path / "events.shrunk.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [event["type"] for event in written] == ["response.created", "response.completed"]


def test_the_chunk_stream_itself(tmp_path: Path) -> None:
    file = tmp_path / "chunks.jsonl"
    changed = [{**one, "id": f"c{n > 3}"} for n, one in enumerate(CALLS)]
    file.write_text(jsonl([*changed, "[DONE]"]).replace('"[DONE]"', "[DONE]"), encoding="utf-8")
    code = next(one.code for one in judge_answer(changed)[0] if "id" in one.message)
    result = run(str(file), "--rule", code, "--budget", "300")
    assert result.exit_code in (0, 1)
    written = (tmp_path / "chunks.shrunk.jsonl").read_text(encoding="utf-8").splitlines()
    assert written[-1] == "[DONE]"
    assert code in {one.code for one in judge_answer([json.loads(line) for line in written[:-1]])[0]}
    assert len(written) < 8


def test_a_spent_budget_exits_1_and_writes_the_best(tmp_path: Path) -> None:
    bad = jsonl([event for event in GOOD["all kinds"] if event["type"] != "response.in_progress"])
    result = run("-", "--budget", "3", "-o", str(tmp_path / "out.jsonl"), given=bad)
    assert result.exit_code == 1
    assert "stopped: the budget of 3 tries is spent; this is the best so far" in result.stdout
    assert (tmp_path / "out.jsonl").read_text(encoding="utf-8").count("\n") <= bad.count("\n")


def test_what_breaks_nothing_exits_3() -> None:
    clean = run("-", given=jsonl(GOOD["links"]))
    assert (clean.exit_code, clean.stdout) == (3, "nothing to shrink: in the events no MUST is broken\n")
    other = run("-", "--rule", "ITM001", "--json", given=jsonl(GOOD["links"][1:]))
    assert other.exit_code == 3
    assert json.loads(other.stdout)["breaks"] is False
    assert "STR001 (MUST)" in json.loads(other.stdout)["others"]
    ours = run("-", given=jsonl([{**one, "id": f"c{n}"} for n, one in enumerate(CALLS)]))
    assert ours.exit_code == 3
    assert "in antiphon's conversion no MUST is broken; the chunk stream itself breaks CHT" in ours.stdout


BAD_USE: dict[str, tuple[tuple[str, ...], str, str]] = {
    "no such file": (("missing.jsonl",), "", "cannot read missing.jsonl"),
    "neither": (("-",), '{"a": 1}\n', "holds neither chunks"),
    "empty": (("-",), "", "holds neither chunks"),
    "no rule": (("-", "--rule", "XXX001"), jsonl(GOOD["links"]), "no rule is called 'XXX001'"),
    "adapter for events": (("-", "--adapter", "a:b"), jsonl(GOOD["links"]), "--adapter and --profile are for chunks"),
    "no adapter": (("-", "--adapter", "no.such:thing"), jsonl(CALLS), "cannot import no.such:thing"),
    "budget": (("-", "--budget", "soon"), jsonl(CALLS), "--budget 'soon'"),
    "no profile": (("-", "--profile", "nobody"), jsonl(CALLS), "nobody"),
}


@pytest.mark.parametrize("name", BAD_USE)
def test_bad_use_exits_2(name: str) -> None:
    arguments, given_text, message_text = BAD_USE[name]
    result = run(*arguments, given=given_text)
    assert result.exit_code == 2
    assert message_text in result.stderr


def test_the_recording_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(jsonl(CALLS), encoding="utf-8")
    result = run(str(file), "-o", str(tmp_path / "." / "a.jsonl"))
    assert result.exit_code == 2
    assert "is the recording itself" in result.stderr


GISTS = (
    ("item 3 was announced at output_index 0", "item 17 was announced at output_index 2"),
    (
        "message msg_tmp_8cjof4f6zpw begins before reasoning rs_2 is done",
        "message msg_0 begins before reasoning rs_1 is done",
    ),
    ("the deltas are 'a', its done is 'ab' (2 more like it)", "the deltas are \"it's\", its done is ''"),
)


@pytest.mark.parametrize(("one", "other"), GISTS)
def test_the_same_fault_has_the_same_gist(one: str, other: str) -> None:
    assert gist(one) == gist(other)
    assert gist(one) != gist("`response.created` came when the response was created")


def test_what_a_file_holds() -> None:
    assert [kind_of(one) for one in ([], ["x", 7], CALLS, GOOD["links"], [{"a": 1}])] == [
        None,
        None,
        "chunks",
        "events",
        None,
    ]


def test_a_shrunk_stream_says_whether_it_is_the_smallest() -> None:
    whole = Shrunk([], Size(1, 1), Size(0, 0), 1)
    assert whole.smallest
    assert not replace(whole, stopped="interrupted").smallest
