"""Objects that are made past pydantic equal those that it validates: slot by slot, and in all that is done with them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from typing import Any, Literal, Optional, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import BaseModel
from openai.types.responses import Response, ResponseOutputItem, ResponseTextDeltaEvent
from pydantic import Field, TypeAdapter, ValidationError

from antiphon import convert
from antiphon.stream.exact import Inexact, maker

from .cases.build import Json, calls, chunk, counted, details, end, frag, refuse, role, text, think, tokens
from .strategies import Conversation, Manner, conversations, manners, render
from .test_properties import SAME_EVERY_TIME, bounded
from .test_usual import LONG


def slots(value: Any) -> Any:
    """Return all that an object holds, at any depth, with its types and the order of its fields."""
    if isinstance(value, BaseModel):
        extra, private = value.__pydantic_extra__, value.__pydantic_private__
        return type(value), slots(value.__dict__), value.__pydantic_fields_set__, slots(extra), private
    if isinstance(value, dict):
        return [(key, slots(one)) for key, one in value.items()]
    return [slots(one) for one in value] if isinstance(value, list) else (type(value), value)


def both(chunks: Sequence[Any], **options: Any) -> list[tuple[Any, Any]]:
    """Return the events as objects, each with what pydantic makes of the same event as a dict."""
    made = list(convert(chunks, events="openai", **SAME_EVERY_TIME, **options))
    dicts = list(convert(chunks, events="dict", **SAME_EVERY_TIME, **options))
    return [(one, type(one).model_validate(held)) for one, held in zip(made, dicts, strict=True)]


# A delta has its fields in the order of the dict; all other events in that of the class.
def without_order(event: Any) -> Any:
    kind, held, *more = slots(event)
    return kind, sorted(held) if kind.__name__.endswith("DeltaEvent") else held, *more


REQUESTS: dict[str, Json] = {
    "nothing": {},
    "tools": {
        "model": "m",
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}],
        "tool_choice": {"type": "function", "name": "f"},
        "metadata": {"a": "b"},
        "temperature": 1,
        "top_p": 0.5,
    },
    "a schema": {
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}, "verbosity": "low"},
        "reasoning": {"effort": "low"},
        "instructions": "be brief",
        "max_output_tokens": 7,
    },
    "odd": {"text": {"format": {"type": "unheard of"}}, "tools": [{"type": "new"}], "user": "u", "conversation": "c"},
}
STREAMS: dict[str, list[Json]] = {
    **{name: [role(), *run, end("stop"), counted(tokens(1, 2))] for name, run in LONG.items()},
    "refusal": [text("well"), refuse("no"), end("content_filter")],
    "annotations": [
        text("see"),
        chunk({"annotations": [{"type": "url_citation", "url": "https://e.org", "title": "E"}]}),
        chunk({"annotations": [{"type": "file_path", "file_id": "f", "index": 1, "more": [{"a": 1}]}]}),
        end("stop"),
    ],
    "signed reasoning": [
        think("hm"),
        details({"type": "reasoning.text", "text": "so", "signature": "s", "index": 0}),
        text("yes"),
        end("stop"),
    ],
    "cut": [text("broken off")],
    "an error": [text("then"), {"error": {"message": "quota", "code": 429}}],
    "custom": [calls({"index": 0, "id": "c", "type": "custom", "custom": {"name": "t", "input": "in"}}), end("stop")],
    "unnamed": [calls(frag(0, "call", None, "{}")), end("stop")],
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("request_name", REQUESTS)
@pytest.mark.parametrize("reasoning", ["summary", "text"])
def test_events_equal_validated_ones(name: str, request_name: str, reasoning: str) -> None:
    try:
        pairs = both(STREAMS[name], request=REQUESTS[request_name], reasoning=reasoning)
    except ValidationError:
        assert request_name == "odd"
        return
    for made, valid in pairs:
        assert without_order(made) == without_order(valid)
        assert made == valid
        assert made.to_json() == valid.to_json() or made.type.endswith(".delta")
        assert made.to_dict() == valid.to_dict()


@bounded(150)
@given(conversations(), manners())
def test_events_of_any_conversation_equal_validated_ones(talk: Conversation, manner: Manner) -> None:
    for made, valid in both(render(talk, manner)):
        assert without_order(made) == without_order(valid)


def test_what_is_done_with_an_event_is_as_with_any_other() -> None:
    for made, valid in both(STREAMS["text with logprobs"]):
        assert pickle.loads(pickle.dumps(made)) == valid
        assert copy.deepcopy(made) == copy.copy(made) == made.model_copy() == valid
        assert repr(made) == repr(valid) or made.type.endswith(".delta")
        assert type(made).model_validate(made) is made
        made.sequence_number = -1
        made.other = "kept"
        assert (made.sequence_number, made.model_extra["other"]) == (-1, "kept")
        assert made != valid
        with pytest.raises(AttributeError):
            made.missing  # noqa: B018 -- that it is not there is the point
        del made.sequence_number
        assert "sequence_number" not in vars(made)


def test_events_share_nothing() -> None:
    first, second = (both(STREAMS["text with logprobs"]) for _ in range(2))
    for made, _ in first:
        _spoil(made)
    assert all(without_order(made) == without_order(valid) for made, valid in second)
    again = both(STREAMS["text with logprobs"])
    assert all(without_order(made) == without_order(valid) for made, valid in again)
    events = [made for made, _ in again]
    _spoil(events[3])
    for made, (_, valid) in zip(events[4:], again[4:], strict=True):
        assert without_order(made) == without_order(valid)


def _spoil(value: Any) -> None:
    if isinstance(value, BaseModel):
        for one in (*vars(value).values(), *(value.__pydantic_extra__ or {}).values()):
            _spoil(one)
        value.__pydantic_fields_set__.clear()
        (value.__pydantic_extra__ or {}).clear()
        vars(value).clear()
    elif isinstance(value, list | dict):
        for one in [*value.values()] if isinstance(value, dict) else [*value]:
            _spoil(one)
        value.clear()


# The maker alone: what is exact is made, all else is refused.


class Leaf(BaseModel):
    type: Literal["leaf"]
    size: Optional[int] = None  # noqa: UP045 -- as openai writes it


class Twig(BaseModel):
    type: Literal["twig"]
    leaves: list[Leaf]
    twigs: Optional[list[Twig]] = None  # noqa: UP045


class Tree(BaseModel):
    height: float
    name: Union[str, Literal["oak"], None] = None  # noqa: UP007
    part: Union[Leaf, Twig, str, int, None] = None  # noqa: UP007
    notes: Optional[dict[str, str]] = None  # noqa: UP045
    data: object = None
    schema_: Optional[dict[str, object]] = Field(default=None, alias="schema")  # noqa: UP045


class Grown(BaseModel):
    rings: list[int] = Field(default_factory=list)


Twig.model_rebuild()

EXACT: list[tuple[type[BaseModel], Json]] = [
    (Leaf, {"type": "leaf"}),
    (Leaf, {"size": None, "type": "leaf", "more": [1, {"a": []}]}),
    (Twig, {"type": "twig", "leaves": [{"type": "leaf", "size": 1}], "twigs": [{"type": "twig", "leaves": []}]}),
    (Tree, {"height": 1}),
    (Tree, {"height": 1.5, "name": "ash", "part": "x", "notes": {"a": "b"}, "data": [{"a": (1,)}]}),
    (Tree, {"height": 1.5, "name": None, "part": {"type": "leaf"}, "schema": {"a": [1]}}),
    (Tree, {"height": 1.5, "part": {"type": "twig", "leaves": []}, "data": {"a": {}}}),
    (Tree, {"height": 2, "part": 3}),
]
INEXACT: list[tuple[type[BaseModel], Any]] = [
    (Leaf, {}),
    (Leaf, {"type": "twig"}),
    (Leaf, {"type": "leaf", "size": True}),
    (Leaf, {"type": "leaf", "size": "1"}),
    (Leaf, [("type", "leaf")]),
    (Twig, {"type": "twig", "leaves": [{"type": "root"}]}),
    (Twig, {"type": "twig", "leaves": {"type": "leaf"}}),
    (Tree, {"height": "1"}),
    (Tree, {"height": True}),
    (Tree, {"height": 1.0, "part": {"type": "root"}}),
    (Tree, {"height": 1.0, "part": {"type": ["leaf"]}}),
    (Tree, {"height": 1.0, "part": 1.5}),
    (Tree, {"height": 1.0, "notes": {"a": 1}}),
    (Tree, {"height": 1.0, "notes": []}),
    (Tree, {"height": 1.0, "schema_": {"a": 1}}),
    (Grown, {"rings": [1]}),
]


@pytest.mark.parametrize(("model", "held"), EXACT)
def test_what_is_exact_is_made(model: type[BaseModel], held: Json) -> None:
    before = copy.deepcopy(held)
    made, valid = maker(model)(held), model.model_validate(copy.deepcopy(held))
    assert made == valid or held["data"] == [{"a": (1,)}]  # a tuple becomes a list, as in JSON
    assert made.to_json() == valid.to_json()
    assert made.model_fields_set == valid.model_fields_set
    _spoil(made)
    assert held == before


@pytest.mark.parametrize(("model", "held"), INEXACT)
def test_what_is_not_is_refused(model: type[BaseModel], held: Any) -> None:
    with pytest.raises(Inexact):
        maker(model)(held)


ITEM = TypeAdapter[Any](ResponseOutputItem)
TOKEN: Json = {"token": "t", "logprob": -0.5, "bytes": [116]}


@bounded(300)
@given(
    st.sampled_from(["token", "logprob", "bytes", "top_logprobs", "other"]),
    st.sampled_from([None, 0, -1, 1.5, "", "x", [], [300], [True], ["a"], [TOKEN], [{**TOKEN, "token": 1}], {}]),
    st.booleans(),
)
def test_log_probabilities_that_are_odd_are_for_pydantic(key: str, value: Any, gone: bool) -> None:
    entry: Json = {**copy.deepcopy(TOKEN), "top_logprobs": [copy.deepcopy(TOKEN)], key: value}
    if gone:
        del entry[key]
    held = {"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "content_index": 0}
    held |= {"delta": "t", "sequence_number": 1, "logprobs": [entry]}
    try:
        made = maker(ResponseTextDeltaEvent)(held)
    except Inexact:
        return
    assert slots(made) == slots(ResponseTextDeltaEvent.model_validate(copy.deepcopy(held)))


def test_a_response_is_made_of_a_snapshot() -> None:
    final = [*convert(STREAMS["text"], events="dict", **SAME_EVERY_TIME)][-1]["response"]
    assert slots(maker(Response)(final)) == slots(Response.model_validate(final))
    assert slots(maker(Response)(final).output[0]) == slots(ITEM.validate_python(final["output"][0]))
