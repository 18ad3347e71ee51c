"""What the rules take a shorter way for says the same as the longer way: one class instead of a union, a run of deltas,
a chunk of the commonest form, JSON text that is skimmed.

The longer way is there for whatever is unusual; here it is taken for everything, and the two are compared.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from antiphon_conformance import check
from antiphon_conformance.attribution import CallSaid, Scan
from antiphon_conformance.read import listed, mapping, text
from antiphon_conformance.rules.narrowed import event_fits, event_types, lightened, open_lightened
from antiphon_conformance.said import Said, listen
from antiphon_conformance.strategies import (
    BrokenChunks,
    BrokenEvents,
    ChunkStream,
    broken_chunk_streams,
    broken_event_streams,
    chunk_streams,
)
from antiphon_conformance.walk import Run

from .mutants import CHUNK_KINDS, KINDS, Events
from .test_mutants import CHUNKS, OURS, SEED, junked

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def bounded(examples: int) -> settings:
    return settings(max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=SLOW)


def mutants(name: str) -> list[Events]:
    """Return a good stream of ours, its mutants, and copies with junk in one event each."""
    rng, good = Random(f"{SEED}/{name}"), OURS[name]
    broken = [mutant for kind in KINDS if (mutant := kind.mutate(good, SEED)) is not None]
    places = [rng.randrange(len(good)) for _ in range(20)]
    return [good, *broken, *([*good[:at], junked(good[at], rng), *good[at + 1 :]] for at in places)]


# Validating


def errors(model: Any, value: Any, *, strict: bool) -> list[tuple[object, ...]]:
    """Return what the whole union says is wrong: where, of which kind, and in which words."""
    try:
        model.model_validate(value, strict=strict)
    except ValidationError as error:
        return [(one["loc"], one["type"], one["msg"]) for one in error.errors()]
    return []


def assert_fits_only_what_validates(events: Events) -> None:
    for event in events:
        kind = text(mapping(event).get("type"))
        model = event_types().get(kind)
        if model is not None:
            wrong = errors(model, event, strict=True)
            assert not (event_fits(kind)(event) and wrong)
            assert errors(model, lightened(event), strict=True) == wrong


@pytest.mark.parametrize("name", OURS)
def test_what_fits_one_class_validates_and_no_error_is_lost(name: str) -> None:
    for events in mutants(name):
        assert_fits_only_what_validates(events)


@bounded(60)
@given(broken_event_streams())
def test_what_fits_in_broken_streams_validates(broken: BrokenEvents) -> None:
    assert_fits_only_what_validates(broken.events)


@pytest.mark.parametrize("name", OURS)
def test_all_that_validates_in_a_good_stream_fits(name: str) -> None:
    for event in OURS[name]:
        model = event_types()[event["type"]]
        assert event_fits(event["type"])(event) == (errors(model, event, strict=True) == [])
    assert lightened(OURS[name][-1])["response"]["output"] == []


@pytest.mark.parametrize("name", OURS)
def test_no_error_of_the_open_schema_is_lost(name: str) -> None:
    resource = pytest.importorskip("openresponses_types").ResponseResource
    light = 0
    for events in mutants(name):
        for event in events:
            response = mapping(mapping(event).get("response"))
            if response:
                bare = open_lightened(response)
                light += bare is not response
                assert errors(resource, bare, strict=False) == errors(resource, response, strict=False)
    assert light > 0 or not OURS[name][-1]["response"]["output"]


def test_nothing_of_an_unknown_type_fits() -> None:
    assert not event_fits("response.sung")({"type": "response.sung"})
    assert not event_fits("")({})


# Runs of deltas


def stepwise(self: Run, event: object) -> bool:
    """Let no delta go on where the last one was."""
    return False


@pytest.mark.parametrize("name", OURS)
def test_a_run_of_deltas_is_judged_as_each_delta(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    streams = mutants(name)[::3]
    together = [check(events, chunks=CHUNKS.get(name)).findings for events in streams]
    monkeypatch.setattr(Run, "goes_on", stepwise)
    assert [check(events, chunks=CHUNKS.get(name)).findings for events in streams] == together


@bounded(100)
@given(broken_event_streams())
def test_a_run_in_a_broken_stream_is_judged_as_each_delta(broken: BrokenEvents) -> None:
    together = check(broken.events).findings
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "goes_on", stepwise)
        assert check(broken.events).findings == together


# Chunks of the commonest forms


def longer(chunks: list[Any]) -> list[Any]:
    """Return the chunks with what the short form does not have, and what says nothing."""
    return [_longer(chunk) for chunk in chunks]


def _longer(chunk: Any) -> Any:
    choices: list[Any] = listed(mapping(chunk).get("choices"))
    if not choices:
        return chunk
    return {**chunk, "choices": [{"usage": None, **one} if mapping(one) else one for one in choices]}


def told(said: Said) -> dict[str, object]:
    """Return all that was read, with calls as values."""
    names = [name for name in Said.__dataclass_fields__ if name != "calls"]
    return {**{name: getattr(said, name) for name in names}, "calls": [call_told(call) for call in said.calls]}


def call_told(call: CallSaid) -> tuple[object, ...]:
    state = (call.unclear, call.shared_id, call.overtaken, call.complete, call.minds_space)
    return (call.number, call.slot, call.custom, call.id, call.ids, call.raw_name, call.pieces, call.call_id, *state)


def assert_read_alike(chunks: list[Any]) -> None:
    assert told(listen(chunks)) == told(listen(longer(chunks)))


@bounded(200)
@given(chunk_streams())
def test_chunks_are_read_alike_in_any_form(stream: ChunkStream) -> None:
    assert_read_alike(stream.chunks)


@bounded(200)
@given(broken_chunk_streams())
def test_broken_chunks_are_read_alike_in_any_form(stream: BrokenChunks) -> None:
    assert_read_alike(stream.chunks)


@pytest.mark.parametrize("name", CHUNKS)
def test_chunks_with_junk_are_read_alike_in_any_form(name: str) -> None:
    rng = Random(f"{SEED}/{name}")
    for _ in range(40):
        assert_read_alike(listed(junked(CHUNKS[name], rng)))
    for kind in CHUNK_KINDS:
        mutant = kind.mutate(CHUNKS[name], SEED)
        if mutant is not None:
            assert_read_alike(mutant)


BESIDE: dict[str, Any] = {
    "white space after the usage": {"choices": [{"index": 0, "delta": {"content": " "}}]},
    "a call that says nothing": {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {}}]}}]},
    "an index that is no number": {"choices": [{"index": "1", "delta": {"content": "a"}}]},
    "another choice": {"choices": [{"index": 1, "delta": {"content": "a"}}]},
    "the same text twice": {"choices": [{"index": 0, "delta": {"content": "a", "reasoning": "b"}}]},
    "a text and a call": {
        "choices": [{"index": 0, "delta": {"content": "a", "tool_calls": [{"index": 0, "id": "x"}]}}]
    },
    "a number": {"choices": [{"index": 0, "delta": {"content": 0, "tool_calls": [{"index": 0, "id": "x"}]}}]},
    "null beside it": {
        "usage": None,
        "choices": [{"index": 0, "delta": {"content": "a", "tool_calls": None, "refusal": None, "reasoning": ""}}],
    },
}


@pytest.mark.parametrize("name", BESIDE)
def test_odd_chunks_are_read_alike_in_any_form(name: str) -> None:
    text_first = {"choices": [{"index": 0, "delta": {"content": "Hello"}}]}
    usage: dict[str, Any] = {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    assert_read_alike([text_first, usage, BESIDE[name], BESIDE[name]])


# JSON text in pieces

SCANNED: dict[str, tuple[bool, bool, bool]] = {
    '{"a": [1, "}"]}': (True, False, False),
    '{"a": "\\"}': (False, False, True),
    '{"a": "\\\\"}': (True, False, False),
    "{} ": (True, False, False),
    "{}{": (True, True, False),
    'x {"': (False, True, True),
    '"a"': (True, False, False),
    " \u2003[": (False, False, False),
    "": (False, False, False),
}


def scanned(*pieces: str) -> tuple[bool, bool, bool]:
    scan = Scan()
    for piece in pieces:
        scan.feed(piece)
    return scan.closed, scan.spoilt, scan.in_string


def test_json_text_is_followed() -> None:
    assert {document: scanned(document) for document in SCANNED} == SCANNED


@bounded(400)
@given(st.lists(st.text(alphabet='{}[]"\\ \n\u2003ax1,:', max_size=8), max_size=6))
def test_the_cut_of_json_text_does_not_matter(pieces: list[str]) -> None:
    assert scanned(*pieces) == scanned("".join(pieces)) == scanned(*"".join(pieces))


# Long streams


def test_a_call_id_that_many_calls_share_is_read_by_its_place() -> None:
    first = [{"index": n, "id": "call_1", "function": {"name": "dig", "arguments": '{"n": '}} for n in range(3)]
    rest = [{"index": n, "id": "call_1", "function": {"arguments": f"{n}}}"}} for n in (2, 0, 1)]
    chunks = [{"choices": [{"index": 0, "delta": {"tool_calls": [one]}}]} for one in (*first, *rest)]
    calls = listen(chunks).calls
    assert [(call.slot, call.arguments, call.shared_id) for call in calls] == [
        (0, '{"n": 0}', False),
        (1, '{"n": 1}', True),
        (2, '{"n": 2}', True),
    ]
