"""The rules about what a server answers: each has mutants that it reports, and good answers give no finding at all."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon_conformance import Level, Recording, find
from antiphon_conformance.chunks import check_answer
from antiphon_conformance.examples.answers import GOOD, MUTANTS, SSE, Mutant, good
from antiphon_conformance.exchange import Exchange, Piece
from antiphon_conformance.rule import answer_rules
from antiphon_conformance.wire import read_wire

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of recordings is not beside the checkout")


@pytest.mark.parametrize("one", MUTANTS, ids=lambda one: f"{one.code}-{one.name}")
def test_a_mutant_is_reported_by_its_rule_alone(one: Mutant) -> None:
    report = check_answer(one.exchange)
    assert set(report.codes) == {one.code, *one.also}, report


@pytest.mark.parametrize("name", GOOD)
def test_a_good_answer_gives_no_finding(name: str) -> None:
    report = check_answer(GOOD[name])
    assert not report.findings
    assert report.ran


@pytest.mark.parametrize("rule", answer_rules(), ids=lambda one: one.code)
def test_each_rule_has_a_mutant_and_runs_on_good_answers(rule: Any) -> None:
    assert rule.code in {one.code for one in MUTANTS}
    assert any(rule.code in check_answer(exchange).ran for exchange in GOOD.values())
    assert find(rule.code) is find(rule.name) is rule


@given(st.lists(st.integers(0, 2000), max_size=8), st.sampled_from(sorted(GOOD)))
@settings(max_examples=60, deadline=None)
def test_how_a_body_is_cut_changes_nothing(cuts: list[int], name: str) -> None:
    exchange = GOOD[name]
    body = exchange.body
    places = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    pieces = tuple(Piece(0.1, body[one:two]) for one, two in pairwise(places))
    again = replace(exchange, pieces=pieces)
    assert not check_answer(again).findings


@given(st.binary(max_size=300))
@settings(max_examples=150, deadline=None)
def test_no_body_raises(body: bytes) -> None:
    for api in ("chat", "responses"):
        check_answer(Exchange(api, {"stream": True, "messages": []}, 200, SSE, (Piece(0.1, body),)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "index", "tool_calls", "function", "usage", "logprobs", "content", "error"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=4), JSON)
@settings(max_examples=150, deadline=None)
def test_no_payload_and_no_request_raises(payloads: list[Any], asked: Any) -> None:
    body = "".join(f"data: {json.dumps(payload)}\n\n" for payload in payloads).encode()
    request = {**(asked if isinstance(asked, dict) else {}), "stream": True, "messages": [], "n": asked, "stop": asked}
    check_answer(Exchange("chat", request, 200, SSE, (Piece(0.1, body),), twin=good()))


def test_the_wire_is_read_as_the_standard_has_it() -> None:
    wire = read_wire("\ufeff: hello\r\nevent: x\r\ndata: a\r\ndata:b\r\n\r\nid: 1\rdata: c\r\rhello\ndata: d".encode())
    assert [tuple(one) for one in wire.messages] == [("x", "a\nb", 3), ("", "c", 7), ("", "d", 10)]
    assert (wire.comments, wire.odd, wire.unfinished) == (1, [(9, "hello")], True)


# --- recordings ------------------------------------------------------------------------------------------------------


def recorded(path: Path) -> Exchange:
    """Return a recorded chunk stream as an answer; the chunks alone were kept, so the frame is ours."""
    lines = (line for line in path.read_bytes().split(b"\n") if line.strip())
    body = b"".join(b"data: %b\n\n" % line for line in lines) + b"data: [DONE]\n\n"
    return Exchange("chat", {"stream": True}, 200, SSE, (Piece(0.1, body),))


def raw(path: Path) -> Exchange:
    """Return a raw recorded body as an answer."""
    meta = json.loads(path.with_suffix(".meta.json").read_text(encoding="utf-8"))
    api = "responses" if "responses" in meta["path"] else "chat"
    request = meta["request"] if isinstance(meta["request"], dict) else {}
    refusal: Any = {"err_bad_model": "model", "err_context_overflow": "length"}.get(path.stem, "")
    return Exchange(
        api, request, meta["status"], meta["headers"], (Piece(0.1, path.read_bytes()),), refusal=refusal,
        left="cancelled_after_data_lines" in meta,
    )  # fmt: skip


def answer_at(place: str) -> Exchange:
    """Return the recording at a place in the corpus."""
    path = CORPUS / place
    return raw(path) if path.suffix == ".sse" else recorded(path)


@needs_corpus
@pytest.mark.parametrize("path", sorted((CORPUS / "chat" / "openai").glob("*.jsonl")), ids=lambda path: path.stem[:50])
def test_openais_own_streams_give_no_finding(path: Path) -> None:
    assert not check_answer(recorded(path)).findings


@needs_corpus
@pytest.mark.parametrize(
    "path", sorted((CORPUS / "chat" / "azure-openai").glob("*.jsonl")), ids=lambda path: path.stem[:50]
)
def test_azures_streams_break_no_must(path: Path) -> None:
    assert not check_answer(recorded(path)).at(Level.MUST)


@needs_corpus
@pytest.mark.parametrize("rule", answer_rules(), ids=lambda one: one.code)
def test_recordings_that_rules_name_are_there_and_show_it(rule: Any) -> None:
    for source in rule.sources:
        if isinstance(source, Recording):
            assert rule.code not in check_answer(answer_at(source.path)).codes
    for source in rule.broken_by:
        assert rule.code in check_answer(answer_at(source.path)).codes, source


@needs_corpus
@pytest.mark.parametrize(
    ("place", "codes"),
    [
        ("wire/llamacpp/chat_text.sse", {"CHT017", "CHT022"}),
        ("wire/llamacpp/chat_emoji_bytes.sse", {"CHT017", "CHT020"}),
        ("wire/llamacpp/chat_n2.sse", {"CHT017", "CHT022", "CHT062"}),
        ("wire/llamacpp/chat_tool_stop_word.sse", {"CHT017", "CHT037"}),
        ("wire/llamacpp/err_midstream_fault.sse", {"CHT007", "CHT050"}),
        ("wire/vllm/chat_length.sse", {"CHT017", "CHT044"}),
        ("wire/vllm/chat_tool_auto.sse", {"CHT017", "CHT036"}),
        ("wire/llmock_faults/chat_text_usage_disconnect.sse", {"CHT040"}),
        ("wire/llmock_faults/chat_text_usage_malformed.sse", {"CHT004"}),
    ],
)
def test_the_known_oddities_of_servers_are_found(place: str, codes: set[str]) -> None:
    found = set(check_answer(answer_at(place)).codes)
    assert codes <= found, found


def test_what_a_server_says_in_the_place_of_a_stream_is_one_finding() -> None:
    body = b'data: {"detail": "Not Found"}\n\n'
    report = check_answer(Exchange("chat", {"stream": True}, 200, SSE, (Piece(0.1, body),)))
    assert [str(one) for one in report.at(Level.MUST)] == [
        'CHT001 MUST the stream: no chunk came; the body is text/event-stream: \'data: {"detail": "Not Found"}\''
    ]
