"""The same chunks in other types: whatever an SDK makes of JSON is read as that JSON, and comes out as plain data."""

from __future__ import annotations

import json
from collections import OrderedDict, UserDict, defaultdict
from collections.abc import Callable, Sequence
from enum import Enum, StrEnum
from types import MappingProxyType, SimpleNamespace
from typing import Any, TypeAlias

import pytest

from antiphon import convert

from .cases.build import (
    Json,
    call,
    calls,
    chunk,
    counted,
    custom,
    detail,
    details,
    end,
    frag,
    refuse,
    role,
    text,
    think,
    tokens,
)
from .test_properties import SAME_EVERY_TIME

Make: TypeAlias = Callable[[Any], Any]


class Text(str):
    """A string of a class of its own, which shows itself in another way, as enumerations of SDKs do."""

    def __str__(self) -> str:
        return f"Text.{super().__str__()}"


class Whole(int): ...


class Number(float): ...


class Object(dict[str, Any]): ...


class List(list[Any]): ...


def entry(token: str) -> Json:
    return {"token": token, "logprob": -1.5, "bytes": [*token.encode()], "top_logprobs": []}


CITED = {"type": "url_citation", "url_citation": {"url": "https://example.org", "title": "t", "start_index": 0}}
CHUNKS: Sequence[Json] = [
    {**role(), "service_tier": "flex", "system_fingerprint": "fp"},
    *(think(f"t{n}") for n in range(3)),
    details(detail("text", index=0, text="q", signature="s")),
    *(text(f"w{n}") for n in range(3)),
    *(text(f"p{n}", choice={"logprobs": {"content": [entry(f"p{n}")]}}) for n in range(3)),
    chunk({"content": "z", "annotations": [CITED, {"type": "other", "weight": 0.5}]}),
    *(refuse(f"no{n}") for n in range(3)),
    calls(frag(0, "call_a", "f", '{"a": "', extra_content={"google": {"thought_signature": "s"}})),
    *(call(0, args=f"p{n}") for n in range(3)),
    call(0, args='"}'),
    call(1, "call_b", "g", {"k": ["v", 1, 2.5, None, True]}),
    calls(custom(2, "call_c", "h", "i")),
    chunk({"images": [{"url": "data:"}]}, "stop"),
    counted(tokens(3, 4, prompt_tokens_details={"cached_tokens": 1})),
]
REQUEST: Json = {
    "model": "m",
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
    "metadata": {"k": "v"},
    "temperature": 0.5,
    "max_output_tokens": 9,
}

# what is given another type -> how
TYPES: dict[str, dict[type[Any], Make]] = {
    "strings": {str: Text},
    "numbers": {int: Whole, float: Number},
    "dicts": {dict: Object},
    "ordered dicts": {dict: OrderedDict},
    "user dicts": {dict: UserDict},
    "default dicts": {dict: lambda held: defaultdict(list, held)},
    "mappings": {dict: MappingProxyType},
    "objects": {dict: lambda held: SimpleNamespace(**held)},
    "lists": {list: List},
    "tuples": {list: tuple},
    "all": {str: Text, int: Whole, float: Number, dict: Object, list: List},
}


def made(value: Any, of: dict[type[Any], Make]) -> Any:
    """Return JSON data with its values, and the keys of its objects, in other types."""
    if isinstance(value, dict):
        keys = str if dict in of and of[dict] not in (Object, OrderedDict) else of.get(str, str)
        held = {keys(key): made(one, of) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return of.get(dict, dict)(held)
    if isinstance(value, list):
        return of.get(list, list)([made(one, of) for one in value])  # pyright: ignore[reportUnknownVariableType]
    kind: Any = type(value)
    return of[kind](value) if kind in of else value


def told(chunks: Sequence[Any], request: Any, style: Any) -> list[Json]:
    events = list(convert(chunks, events=style, request=request, **SAME_EVERY_TIME))
    return [json.loads(event.partition(b"data: ")[2]) if style == "sse" else event for event in events]


@pytest.mark.parametrize("style", ["dict", "sse"])
@pytest.mark.parametrize("name", TYPES)
def test_other_types_say_the_same(name: str, style: str) -> None:
    of = TYPES[name]
    assert told([made(one, of) for one in CHUNKS], made(REQUEST, of), style) == told(CHUNKS, REQUEST, style)


@pytest.mark.parametrize("name", TYPES)
def test_openai_events_are_plain_too(name: str) -> None:
    of = TYPES[name]
    events, usual = (
        list(convert(chunks, request=request, **SAME_EVERY_TIME))
        for chunks, request in (([made(one, of) for one in CHUNKS], made(REQUEST, of)), (CHUNKS, REQUEST))
    )
    assert [event.to_json() for event in events] == [event.to_json() for event in usual]


class Finish(Enum):
    LENGTH = "length"


class Word(StrEnum):
    LENGTH = "length"


@pytest.mark.parametrize("finish", [Finish.LENGTH, Word.LENGTH, Text("length")])
def test_a_finish_of_an_enumeration(finish: Any) -> None:
    assert told([text("Hi"), end(finish)], None, "dict") == told([text("Hi"), end("length")], None, "dict")
