"""The models over llama.cpp's own server, where it is: streamed and whole answers are the same, over every backend."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from antiphon.models import ChatCompletionsModel, ModelSettings, ModelTracing, OpenAIResponsesModel
from antiphon.models.interface import Model
from antiphon.tool import FunctionTool
from antiphon_conformance import Level, check
from tests.providers.backends.kinds import KINDS, made
from tests.providers.backends.llamacpp import llamacpp, needs_llamacpp

pytestmark = [pytest.mark.live, needs_llamacpp]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with llamacpp() as at:
        yield at


async def _never(_: Any, arguments: str) -> str:
    raise AssertionError(f"a model calls no tool itself: {arguments}")


def tool(name: str, properties: Mapping[str, Any]) -> FunctionTool:
    schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return FunctionTool(name=name, description=name, params_json_schema=schema, on_invoke_tool=_never)


WEATHER = tool("get_weather", {"city": {"type": "string", "maxLength": 12}, "unit": {"enum": ["c", "f"]}})
ADD = tool("add", {name: {"type": "integer", "minimum": 0, "maximum": 99} for name in "ab"})
FORMAT = {
    "type": "json_schema",
    "json_schema": {
        "name": "place",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"city": {"enum": ["Paris", "Rome"]}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


class Asked(NamedTuple):
    """A request, and the types of items that are in its answer, among others."""

    said: str
    types: frozenset[str]
    tools: tuple[FunctionTool, ...] = ()
    settings: ModelSettings = ModelSettings()


CASES = {
    "text": Asked("Hello", frozenset({"message"})),
    "reasoning": Asked("Think about it", frozenset({"reasoning", "message"})),
    "tools": Asked("What is the weather in Oslo?", frozenset({"function_call"}), (WEATHER, ADD)),
    "text and tool": Asked("both", frozenset({"message", "function_call"}), (WEATHER, ADD)),
    "cut characters": Asked("emoji", frozenset({"message"})),
    "json schema": Asked(
        "Where?", frozenset({"message"}), settings=ModelSettings(extra_args={"response_format": FORMAT})
    ),
    "length": Asked("long", frozenset({"message"}), settings=ModelSettings(max_tokens=7)),
}
SEEDED = ModelSettings(temperature=0, max_tokens=200, extra_body={"seed": 7})


async def answers(model: Model, asked: Asked) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the items of the whole answer, those of the streamed one, and the events of that, as plain data."""
    settings = SEEDED.resolve(asked.settings)
    request = (None, asked.said, settings, asked.tools, None, (), ModelTracing.DISABLED)
    whole = await model.get_response(*request)
    events = [event.to_dict() async for event in model.stream_response(*request)]
    return (
        [told(item.to_dict()) for item in whole.output],
        [told(one) for one in events[-1]["response"]["output"]],
        events,
    )


def told(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item without what is made up anew for each answer."""
    return {key: value for key, value in item.items() if key not in ("id", "call_id", "provider_data")}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES)
async def test_streamed_is_whole(kind: str, case: str, url: str) -> None:
    asked = CASES[case]
    async with made(kind, url) as one:
        whole, streamed, events = await answers(ChatCompletionsModel(one.model, backend=one.backend), asked)
    assert streamed == whole
    assert check(events).ok, check(events).findings
    assert asked.types <= {item["type"] for item in whole}
    if case == "json schema":
        assert json.loads(whole[-1]["content"][0]["text"])["city"] in ("Paris", "Rome")


@pytest.mark.parametrize("case", ["text", "reasoning", "tools"])
async def test_the_native_stream_is_repaired(case: str, url: str) -> None:
    """The server's own Responses stream breaks the rules; with `repair` it does not, and says the same."""
    asked = CASES[case]
    plain = OpenAIResponsesModel("tiny", base_url=f"{url}/v1", api_key="none")
    repaired = OpenAIResponsesModel("tiny", base_url=f"{url}/v1", api_key="none", repair=True)
    try:
        _, _, native = await answers(plain, asked)
        whole, streamed, events = await answers(repaired, asked)
    finally:
        await plain.close()
        await repaired.close()
    assert not check(native).ok
    assert [str(one) for one in check(events).findings if one.level is Level.MUST] == []
    assert [said(item) for item in streamed] == [said(item) for item in whole]


def said(item: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what an item says, by type: its texts, or its call."""
    parts = [*(item.get("content") or ()), *(item.get("summary") or ())]
    return item["type"], item.get("name"), item.get("arguments"), "".join(part.get("text", "") for part in parts)
