"""The cases as data: they are cases, they say what their chunks say, our own handlers meet them, and broken events do
not."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from antiphon_conformance import all_rules, check, find
from antiphon_conformance.adapters import PythonAdapter
from antiphon_conformance.case import (
    CAPABILITIES,
    BadCase,
    Case,
    case_schema,
    cases_hash,
    load_cases,
    read_case,
    read_cases,
)
from antiphon_conformance.expecting import unmet
from antiphon_conformance.own import WAYS, profile_for
from antiphon_conformance.results import Outcome
from antiphon_conformance.running import Settings, run_suite
from antiphon_conformance.validity import problems_of

CASES = [case for case in load_cases() if isinstance(case, Case)]
FOLDER = files("antiphon_conformance") / "cases"
GOOD: dict[str, Any] = {
    "id": "mine/one",
    "title": "one",
    "source": "us",
    "rules": ["ITM001"],
    "chunks": [{"delta": {"content": "Hi"}}, {"finish_reason": "stop"}],
    "expect": {"status": "completed", "output": [{"type": "message", "text": "Hi"}]},
}


def written(**changes: Any) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


def test_there_are_enough_and_all_are_cases() -> None:
    assert len(CASES) >= 150
    assert [problems_of(case) for case in load_cases() if problems_of(case)] == []


def test_the_schema_is_current_and_every_case_validates() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((FOLDER / "schema.json").read_text("utf-8"))
    assert schema == case_schema()
    validator = jsonschema.Draft202012Validator(schema)
    files_of = [file for folder in FOLDER.iterdir() if folder.is_dir() for file in folder.iterdir()]
    assert len(files_of) == len(CASES)
    assert [file.name for file in files_of if not validator.is_valid(json.loads(file.read_text("utf-8")))] == []


def test_every_capability_but_http_is_needed_somewhere() -> None:
    assert set().union(*(case.needs for case in CASES)) == set(CAPABILITIES) - {"http"}


def test_every_area_of_event_rules_is_what_some_case_is_about() -> None:
    about = {code[:3] for case in CASES for code in case.rules}
    # Every event of every case is numbered: no case is about that alone.
    assert {rule.area for rule in all_rules()} - about == {"SEQ"}
    assert all(find(code) is not None for case in CASES for code in case.rules)


SOURCE = re.compile(r"recording (?P<provider>[a-z0-9.-]+): (?P<what>.+)|issue [\w.-]+/[\w.-]+#\d+|grammar: .+")
CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "chat"


def test_every_case_says_where_its_fact_is_from() -> None:
    assert [case.id for case in CASES if not SOURCE.fullmatch(case.source)] == []


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of recordings does not lie beside the checkout")
def test_every_recording_that_a_case_names_exists() -> None:
    named = [match for case in CASES if (match := SOURCE.fullmatch(case.source)) and "--" in (match["what"] or "")]
    assert len(named) > 20
    files_of = [CORPUS / match["provider"] / f"{match['what']}.jsonl" for match in named]
    assert [str(file) for file in files_of if not file.is_file()] == []


def test_the_hash_is_that_of_what_the_cases_say() -> None:
    assert cases_hash(CASES) == cases_hash([copy.deepcopy(case) for case in CASES])
    assert cases_hash(CASES) != cases_hash(CASES[1:])
    assert cases_hash(CASES) != cases_hash([replace(CASES[0], title="another"), *CASES[1:]])


BAD = [
    (b"<html>", "malformed"),
    (b"{", "truncated"),
    (b"\xff", "malformed"),
    (b"[]", "Expected `object`"),
    (written(id="Not An Id"), "$.id"),
    (written(surplus=1), "surplus"),
    (written(needs=["magic"]), "$.needs[0]"),
    (written(opt_ins=["magic"]), "$.opt_ins[0]"),
    (written(rules=["X1"]), "$.rules[0]"),
    (written(chunks=[1]), "$.chunks[0]"),
    (written(chunks="elsewhere.jsonl"), "the case is in no folder"),
    (written(expect={"status": "done", "output": []}), "$.expect.status"),
    (written(expect={"status": "completed", "output": [{"type": "poem"}]}), "$.expect.output[0]"),
    (written(raises={"message": "x", "type": "KeyError"}), "$.raises.type"),
    (b"[" * 100_000, ""),
]


@pytest.mark.parametrize(("data", "reason"), BAD, ids=range(len(BAD)))
def test_what_is_no_case_says_why(data: bytes, reason: str) -> None:
    case = read_case(data, "mine/one")
    assert isinstance(case, BadCase)
    assert reason in case.reason
    assert case.reason


CONTRADICTIONS = [
    ({"rules": ["ITM999"]}, "no rule 'ITM999'"),
    ({"chunks": [{"choices": [1]}]}, "chunk 0: choices"),
    ({"chunks": [{"raw": {"id": "x"}}]}, "chunk 0 has neither"),
    ({"expect": {"status": "completed", "output": [{"type": "message", "text": "Ho"}]}}, "the expected text is 'Ho'"),
    (
        {"expect": {"status": "failed", "output": [{"type": "message", "text": "Hi"}]}},
        "the expected status is 'failed'",
    ),
    ({"chunks": [{"delta": {"content": "Hi"}}]}, "the expected status is 'completed'"),
]


@pytest.mark.parametrize(("changes", "problem"), CONTRADICTIONS)
def test_a_case_that_contradicts_itself_is_the_suites_error(changes: dict[str, Any], problem: str) -> None:
    case = read_case(written(**changes), "mine/one")
    (told,) = problems_of(case)
    assert problem in told
    report = run_suite(PythonAdapter(WAYS["dicts"]), [case])
    assert [(run.outcome, [one.code for one in run.findings]) for run in report.runs] == [(Outcome.ERROR, ["HAR001"])]
    assert report.exit_status == 2


def test_cases_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_bytes(written(chunks="one.jsonl"))
    (tmp_path / "one.jsonl").write_text('{"delta":{"content":"Hi"}}\n\n{"finish_reason":"stop"}\n')
    (tmp_path / "two.json").write_bytes(written())
    one, two = read_cases(tmp_path)
    assert one == read_case(written(), "mine/one")
    assert two == BadCase("two", "another case has the id 'mine/one'")


# Our own handlers


@pytest.mark.parametrize("way", WAYS)
def test_our_handlers_meet_every_case_in_every_form(way: str) -> None:
    # Breaking off after each chunk is most of the work, and the ways differ in their ends only.
    whole = way in ("dicts", "abody")
    forms = ("characters", "interleaved", "usage-alone", "usage-on-finish", "empty", "nulls")
    settings = Settings(has=CAPABILITIES, strict=True, forms=(*forms, *(["broken"] if whole else [])))
    report = run_suite(PythonAdapter(WAYS[way]), settings=settings)
    found = {run.name: [str(one) for one in run.findings] for run in report.runs if run.findings or run.new}
    assert found == {}
    assert report.exit_status == 0
    left_out = {run.case for run in report.runs if run.outcome is Outcome.NOT_APPLICABLE}
    done_alone = {case.id for case in CASES if case.done and not case.finishes}
    assert left_out == (set() if "body" in way else done_alone)


# Events that are broken


def events_of(case: Case) -> list[dict[str, Any]]:
    from antiphon import ChatCmplStreamHandler

    handler = ChatCmplStreamHandler(profile_for(case.opt_ins), events="dict", ids="counted", created_at=0)
    events = [event for chunk in case.chunks for event in handler.feed(copy.deepcopy(chunk))]
    last = handler.fail(ConnectionError(case.raises.message)) if case.raises else handler.finish(done=case.done)
    return json.loads(json.dumps([*events, *last]))  # snapshots share what they hold


def without_last_item(events: list[dict[str, Any]]) -> None:
    gone = events[-1]["response"]["output"].pop()
    events[:] = [one for one in events if one.get("item_id", one.get("item", {}).get("id")) != gone["id"]]


def swapped_status(events: list[dict[str, Any]]) -> None:
    response = events[-1]["response"]
    response["status"] = "incomplete" if response["status"] == "completed" else "completed"
    events[-1]["type"] = f"response.{response['status']}"


def another_text(events: list[dict[str, Any]]) -> None:
    for item in events[-1]["response"]["output"]:
        for part in (*item.get("content", ()), *item.get("summary", ())):
            part["text" if "text" in part else "refusal"] += "~"
        for key in ("arguments", "input"):
            if key in item:
                item[key] += "~"


WAYS_TO_BREAK = (without_last_item, swapped_status, another_text)


@pytest.mark.parametrize("way", WAYS_TO_BREAK, ids=lambda way: way.__name__)
def test_no_expectation_is_met_by_broken_events(way: Any) -> None:
    blind: list[str] = []
    for case in CASES:
        events = events_of(case)
        if way is swapped_status or any(map(says_something, events[-1]["response"]["output"])):
            way(events)
            report = replace(check(events), findings=())
            assert case.expect is not None
            if not unmet(case.expect, report):
                blind.append(case.id)
    assert blind == []


def says_something(item: dict[str, Any]) -> bool:
    return any(
        part.get("text") or part.get("refusal") for part in (*item.get("content", ()), *item.get("summary", ()))
    ) or ("arguments" in item or "input" in item)
