"""What the rules take a shorter way for says the same as the longer way: fields alone instead of models, a run of
deltas, a chunk of the commonest form, JSON text that is skimmed.

The longer way is there for whatever is unusual; here it is taken for everything, and the two are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from random import Random
from typing import Any, Literal, Self

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter, ValidationError, model_validator

from antiphon import convert
from antiphon_conformance import check
from antiphon_conformance.attribution import CallSaid, Scan
from antiphon_conformance.read import listed, mapping, text
from antiphon_conformance.rules.fields_alone import fits
from antiphon_conformance.rules.lightened import lightened, open_lightened
from antiphon_conformance.rules.published import event_fits, event_types, open_response_fits
from antiphon_conformance.said import Said, listen
from antiphon_conformance.strategies import (
    BrokenChunks,
    BrokenEvents,
    ChunkStream,
    broken_chunk_streams,
    broken_event_streams,
    chunk_streams,
)
from antiphon_conformance.trace import AT_ONCE, LONG
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
            assert not (event_fits()(event) and wrong)
            assert errors(model, lightened(event), strict=True) == wrong


@pytest.mark.parametrize("name", OURS)
def test_what_fits_validates_and_no_error_is_lost(name: str) -> None:
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
        assert event_fits()(event) == (errors(model, event, strict=True) == [])
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
                assert not (open_response_fits()(response) and errors(resource, response, strict=False))
                assert errors(resource, bare, strict=False) == errors(resource, response, strict=False)
    assert light > 0 or not OURS[name][-1]["response"]["output"]


def long_ones(**changed: Any) -> Iterator[Any]:
    """Yield the events and responses that hold long lists; `changed` is what one member of each has."""
    entry: dict[str, Any] = {"token": "a", "logprob": -0.1, "bytes": [97], "top_logprobs": []}
    logprobs = [entry] * LONG
    link = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
    links: list[dict[str, Any]] = [dict(link) for _ in range(LONG)]
    for several in (logprobs, links):
        several[LONG // 2] = {**several[LONG // 2], **changed}
    part = {"type": "output_text", "text": "a" * LONG, "annotations": links, "logprobs": logprobs}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "a", **changed}] * LONG}
    ids = {"sequence_number": 1, "output_index": 0}
    yield {"type": "response.output_text.done", **ids, "item_id": "msg_1", "content_index": 0, "text": part["text"],
           "logprobs": logprobs}  # fmt: skip
    yield {"type": "response.content_part.done", **ids, "item_id": "msg_1", "content_index": 0, "part": part}
    yield from ({"type": "response.output_item.done", **ids, "item": one} for one in (item, thought))
    head = next(event for event in OURS["text"] if event["type"] == "response.completed")
    yield {**head, "response": {**head["response"], "output": [item, thought]}}


def test_long_lists_are_asked_member_by_member() -> None:
    for event in long_ones():
        assert errors(event_types()[event["type"]], event, strict=True) == []
        light = lightened(event, deep=True)
        assert event_fits()(light)
        assert len(repr(light)) < len(repr(event)) / 4


@pytest.mark.parametrize(
    "changed", [{"type": 5}, {"text": 5}, {"token": 5, "title": 5}, {"bytes": ["a"], "url": None}], ids=repr
)
def test_no_fault_in_a_long_list_is_lost(changed: dict[str, Any]) -> None:
    resource = pytest.importorskip("openresponses_types").ResponseResource
    wrong = 0
    for event in long_ones(**changed):
        model, light = event_types()[event["type"]], lightened(event, deep=True)
        assert bool(errors(model, light, strict=True)) == bool(errors(model, event, strict=True))
        wrong += bool(errors(model, event, strict=True))
        response = mapping(event.get("response"))
        if response:
            light = open_lightened(response, deep=True)
            assert bool(errors(resource, light, strict=False)) == bool(errors(resource, response, strict=False))
    assert wrong > 0


def test_a_long_text_with_logprobs_is_judged_as_a_short_one() -> None:
    entry = {"token": "a", "logprob": -0.1, "bytes": [97], "top_logprobs": []}
    said = {"index": 0, "delta": {"content": "a"}, "logprobs": {"content": [entry]}}
    chunks = [{"choices": [said]}] * (2 * LONG)
    events = list(convert([*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}], events="dict"))
    assert check(events).findings == ()
    done = next(event for event in events if event["type"] == "response.output_text.done")
    broken = [*done["logprobs"][:-1], {**done["logprobs"][-1], "token": 5}]
    found = check([{**event, "logprobs": broken} if event is done else event for event in events])
    assert [(one.code, one.index) for one in found.findings if one.code == "SCH001"] == [("SCH001", events.index(done))]


def test_nothing_of_an_unknown_type_fits() -> None:
    assert not event_fits()({"type": "response.sung"})
    assert not event_fits()({})
    assert not event_fits()(None)


class Sung(BaseModel):
    type: Literal["sung"]
    words: str


class Hummed(BaseModel):
    type: Literal["hummed"] = "hummed"


class Closed(BaseModel, extra="forbid"):
    type: Literal["closed"]


class Checked(BaseModel):
    type: Literal["checked"]
    count: int

    @model_validator(mode="after")
    def some(self) -> Self:
        if self.count < 1:
            raise ValueError("none")
        return self


class Clef(Enum):
    G = "g"


class Noted(BaseModel):
    type: Clef


class Round(BaseModel):
    type: Literal["round"]
    metadata: Round | Sung | None = None


class Untyped(BaseModel):
    words: str


class Told(BaseModel):
    metadata: Checked


class Renamed(BaseModel):
    schema_: str = Field(alias="schema")
    format: str | None = None


# annotation -> the values that fit and those that do not: never more than validate
FITTING: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "fields": (Untyped, [{"words": "la"}, {"words": "la", "more": 1}], [{"words": 1}, {}, None, "la"]),
    "an instance is no dict": (Untyped, [], [Untyped(words="la")]),
    "types apart": (
        Sung | Hummed,
        [{"type": "sung", "words": "la"}, {"type": "hummed"}],
        [{"type": "sung"}, {"type": "hissed"}, {"type": ["sung"]}, {}],
    ),
    "one has no type": (Sung | Untyped, [{"type": "sung", "words": "la"}, {"words": "la"}], [{"type": "sung"}]),
    "no more than that": (Closed, [{"type": "closed"}], [{"type": "closed", "more": 1}]),
    "code of its own": (Checked, [{"type": "checked", "count": 1}], [{"type": "checked", "count": 0}]),
    "code below": (
        Told,
        [{"metadata": {"type": "checked", "count": 1}}],
        [{"metadata": {"type": "checked", "count": 0}}],
    ),
    "types by enum": (Sung | Noted, [{"type": "g"}, {"type": "sung", "words": "la"}], [{"type": "h"}]),
    "another name in JSON": (
        Renamed,
        [{"schema": "a"}],
        [{"schema_": "a"}, {"schema": 1}, {"schema": "a", "format": 1}],
    ),
    "in itself": (
        list[Round],
        [[{"type": "round", "metadata": {"type": "round", "metadata": {"type": "sung", "words": "la"}}}], []],
        [[{"type": "round", "metadata": {"type": "sung"}}], [{"type": "ring"}]],
    ),
}


@pytest.mark.parametrize("name", FITTING)
def test_fields_alone_let_through_what_validates(name: str) -> None:
    annotation, good, bad = FITTING[name]
    strict = name != "types by enum"  # strictly, an enum has members alone, and JSON has none
    asked, whole = fits(annotation, strict=strict), TypeAdapter[Any](annotation).validator
    assert [asked(value) for value in (*good, *bad)] == [*(True for _ in good), *(False for _ in bad)]
    assert all(whole.isinstance_python(value, strict=strict) for value in good)


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


# Some at a time


@pytest.mark.parametrize("name", OURS)
def test_how_many_are_looked_at_at_once_does_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    streams = mutants(name)[::3]
    found = [check(events, chunks=CHUNKS.get(name)).findings for events in streams]
    for several in (1, 2, 5):
        monkeypatch.setattr("antiphon_conformance.trace.AT_ONCE", several)
        assert [check(events, chunks=CHUNKS.get(name)).findings for events in streams] == found


def test_what_breaks_far_behind_is_found() -> None:
    pairs = ({"reasoning": f"r{n}"} if n % 2 else {"content": f"t{n}"} for n in range(3 * AT_ONCE))
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in pairs]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    events = list(convert(chunks, events="dict"))
    assert check(events, chunks=chunks).findings == ()
    last = max(at for at, event in enumerate(events) if event["type"] == "response.content_part.added")
    broken = {**events[last], "part": {**events[last]["part"], "text": "already"}}
    found = check([*events[:last], broken, *events[last + 1 :]], chunks=chunks).findings
    assert [(one.code, one.index) for one in found] == [("PRT004", last)]


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


COUNTS = {"prompt_tokens": 1, "completion_tokens": 2}
BESIDE: dict[str, Any] = {
    "usage beside a text": {"usage": COUNTS, "choices": [{"index": 0, "delta": {"content": "a"}}]},
    "usage beside white space": {"usage": COUNTS, "choices": [{"index": 0, "delta": {"content": " "}}]},
    "usage that counts nothing": {"usage": {"cost": 1}, "choices": [{"index": 0, "delta": {"content": " "}}]},
    "usage that is none": {"usage": 5, "choices": [{"index": 0, "delta": {"content": "a"}}]},
    "usage beside a call that says nothing": {
        "usage": COUNTS,
        "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {}}]}}],
    },
    "usage beside a call": {
        "usage": COUNTS,
        "choices": [
            {"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]}}
        ],
    },
    "usage beside reasoning that says nothing": {
        "usage": COUNTS,
        "choices": [{"index": 0, "delta": {"reasoning_details": [{}]}}],
    },
    "reasoning that says nothing": {"choices": [{"index": 0, "delta": {"reasoning_details": [{}]}}]},
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
