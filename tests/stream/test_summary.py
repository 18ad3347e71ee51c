"""The measure itself: what the tests compare with finds what it should find."""

from __future__ import annotations

from typing import Any

import pytest

from .cases.build import Json, call, called, end, said, text, thought, tokens
from .oracle import chunks_of, held, implied_ending
from .summary import anonymous, compact, differences, flat_usage, heard, told, within

PART: Json = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
PLACE = {"output_index": 0, "item_id": "msg_a", "content_index": 0}
MESSAGE = {"id": "msg_a", "type": "message", "role": "assistant", "status": "completed"}


def events(*deltas: str, whole: str) -> list[Json]:
    """Return a stream of one message that says `deltas` and tells `whole`."""
    done: Json = {**MESSAGE, "content": [{**PART, "text": whole}]}
    return [
        {"type": "response.output_item.added", "output_index": 0, "item": {**MESSAGE, "content": []}},
        {"type": "response.content_part.added", **PLACE, "part": PART},
        *({"type": "response.output_text.delta", **PLACE, "delta": one, "logprobs": []} for one in deltas),
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": {"status": "completed", "output": [done]}},
    ]


def test_what_is_heard_is_what_the_deltas_say() -> None:
    good, bad = events("a", "b", whole="ab"), events("a", whole="ab")
    assert heard(good) == told(good).output
    assert heard(bad) != told(bad).output


@pytest.mark.parametrize("ends", [0, 2])
def test_one_terminal_event_is_asked_for(ends: int) -> None:
    stream = events("a", whole="a")
    with pytest.raises(AssertionError):
        told(stream[:-1] + [stream[-1]] * ends)


DIFFERENT: list[Any] = [
    pytest.param([said("a")], [], id="an item too few"),
    pytest.param([], [called("f", "{}", "x")], id="an item too many"),
    pytest.param([thought("a")], [{"type": "reasoning", "text": "b"}], id="another text"),
    pytest.param(
        [said("a")], [{"type": "message", "parts": [["refusal", "a"]], "status": "completed"}], id="a refusal"
    ),
    pytest.param([called("f", "{}", "x")], [called("f", "{}", "y")], id="another call_id"),
    pytest.param([called("f", "{}")], [called("f", "{}", "x")], id="a call_id that was not made"),
    pytest.param([called("f", {"a": 1}, "x")], [called("f", '{"a":2}', "x")], id="other JSON"),
    pytest.param([called("f", {"a": 1}, "x")], [called("f", '{"a":', "x")], id="no JSON"),
    pytest.param([called("f", "{}", "x")], [called("f", "{}", "x", "incomplete")], id="another status"),
]


@pytest.mark.parametrize(("expected", "output"), DIFFERENT)
def test_a_difference_is_found(expected: list[Json], output: list[Json]) -> None:
    assert differences(expected, output)


def test_what_is_as_expected_has_no_differences() -> None:
    message = compact({**MESSAGE, "content": [{**PART, "text": "a"}]})
    output = [message, called("f", '{ "a": 1 }', "call_1")]
    assert differences([said("a", annotations=[]), called("f", {"a": 1})], output) == []


def test_within_asks_for_all_that_is_expected() -> None:
    assert within({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}], "d": 3})
    assert not within({"a": [{"b": 1}]}, {"a": []})
    assert not within({"a": None}, {})


def test_ids_are_renamed_in_order() -> None:
    stream: list[Json] = [
        {"id": "msg_zz", "other": {"item_id": "fc_9"}},
        {"id": "msg_aa"},
        {"id": "msg_zz", "text": "msg_zz"},
    ]
    assert anonymous(stream) == [
        {"id": "msg_1", "other": {"item_id": "fc_1"}},
        {"id": "msg_2"},
        {"id": "msg_1", "text": "msg_zz"},
    ]


def test_usage_in_one_level() -> None:
    assert flat_usage({"usage": None}) is None
    nested = {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": None}
    assert flat_usage({"usage": nested}) == {"input_tokens": 1, "cached_tokens": 0}


def test_the_oracle_reads_sums() -> None:
    chunks = [
        {**text("a"), "usage": tokens(1, 1)},
        call(0, "x", "f", "{}"),
        call(0, args='{"a":1}'),
        text("b"),
        end("length"),
    ]
    made = held(chunks)
    assert (made.text, made.ending) == ("ab", "max_output_tokens")
    assert [(one.id, one.name, one.arguments) for one in made.calls] == [("x", "f", '{"a":1}')]


ENDED: list[tuple[list[Json], bool, str]] = [
    ([], True, "failed"),
    ([text("a")], False, "failed"),
    ([text("a")], True, "completed"),
    ([text("a"), {"choices": [], "usage": tokens(1, 1)}], False, "completed"),
    ([{**text("a"), "usage": tokens(1, 1)}], False, "failed"),
    ([end("stop"), end("length")], False, "max_output_tokens"),
    ([end("SAFETY")], False, "content_filter"),
]


@pytest.mark.parametrize(("chunks", "done", "ending"), ENDED)
def test_the_oracle_knows_the_endings(chunks: list[Json], done: bool, ending: str) -> None:
    assert implied_ending(chunks, done) == ending


def test_the_oracle_reads_bodies() -> None:
    body = b': hi\n\ndata: {"a":1}\r\n\r\ndata: {"b\n\ndata: [DONE]\n\ndata: {"c":3}\n\n'
    assert chunks_of(body) == ([{"a": 1}], True, True)
