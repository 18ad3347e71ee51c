"""Each scenario of the backend, streamed and not: the events are good, and both ways give one response."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.models.native_input import native_input

from .asking import TOOL, Json, asked, asking, shape, streamed, whole
from .conftest import over
from .scripted_backend import Scripted

CALL = ["call", "weather", '{"city": "Paris"}']
SAID = ["message", "Hello there!"]
USED = [11, 7]


def completed(*output: list[Any], usage: list[int] | None = USED) -> Json:
    return {"status": "completed", "incomplete": None, "output": list(output), "usage": usage}


def incomplete(reason: str, *output: list[Any]) -> Json:
    return {"status": "incomplete", "incomplete": {"reason": reason}, "output": list(output), "usage": USED}


TOOLS: Json = {"tools": [TOOL]}
SCHEMA: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FORMAT: Json = {"text": {"format": {"type": "json_schema", "name": "place", "schema": SCHEMA, "strict": True}}}
PICTURE = [
    {"role": "user", "content": [{"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"}]}
]
# scenario -> what the request says beside it, and the response
CASES: dict[str, tuple[Json, Json]] = {
    "text": ({}, completed(SAID)),
    "tool": (TOOLS, completed(CALL)),
    "text-and-tool": (TOOLS, completed(["message", "Let me look."], CALL)),
    "parallel": (TOOLS, completed(CALL, CALL)),
    "missing-index": (TOOLS, completed(CALL, CALL)),
    "same-index": (TOOLS, completed(CALL, CALL)),
    "null-index": (TOOLS, completed(CALL, CALL)),
    "whole-calls": (TOOLS, completed(CALL, CALL)),
    "empty-arguments": (TOOLS, completed(["call", "weather", "{}"])),
    "reasoning": ({}, completed(["reasoning", "Let me think."], ["message", "Forty-two."])),
    "reasoning-tool": (TOOLS, completed(["reasoning", "A tool helps."], CALL)),
    "refusal": ({}, completed(["message", "I will not."])),
    "length": ({}, incomplete("max_output_tokens", ["message", "This is cut"])),
    "content-filter": ({}, incomplete("content_filter", ["message", "This is"])),
    "structured": (FORMAT, completed(["message", '{"city": "Paris"}'])),
    "usage-none": ({}, completed(["message", "No usage."], usage=None)),
    "usage-finish": ({}, completed(["message", "Usage with the finish."])),
    "usage-every": ({}, completed(["message", "Usage on every chunk."])),
    "error-500-then-ok": ({}, completed(SAID)),
    "error-429-then-ok": ({}, completed(SAID)),
    "image": ({"input": PICTURE}, completed(["message", "images: ['https://example.org/a.png']"])),
    "history": ({"instructions": "Be brief."}, completed(["message", "system,user | Hi"])),
}


@pytest.mark.parametrize("scenario", CASES)
async def test_a_scenario_streamed_and_whole(scenario: str, scripted: Scripted) -> None:
    params, wanted = CASES[scenario]
    async with asking(over(scripted)) as client:
        events = await streamed(client, scenario, **params)
        answer = await asked(client, scenario, **params, metadata={"way": "whole"})
    assert shape(events[-1]["response"]) == wanted
    assert answer.status_code == 200, answer.text
    assert shape(whole(answer.json())) == wanted


@pytest.mark.parametrize("scenario", ["tool", "parallel", "reasoning-tool", "text-and-tool", "missing-index"])
async def test_tool_outputs_go_back(scenario: str, scripted: Scripted) -> None:
    async with asking(over(scripted)) as client:
        first = (await streamed(client, scenario, store=False, **TOOLS))[-1]["response"]
        calls = [item for item in first["output"] if item["type"] == "function_call"]
        outputs = [
            {"type": "function_call_output", "call_id": one["call_id"], "output": f"sun {at}"}
            for at, one in enumerate(calls)
        ]
        given = [{"role": "user", "content": "Hi"}, *first["output"], *outputs]
        second = (await streamed(client, scenario, input=given, store=False, **TOOLS))[-1]["response"]
    said = "; ".join(f"sun {at}" for at in range(len(calls)))
    assert shape(second)["output"] == [["message", f"The tool said: {said}"]]
    roles = [one["role"] for one in scripted.asked[-1]["messages"]]
    assert roles == ["user", "assistant", *["tool"] * len(calls)]


# scenario -> status, code, and what the message holds
ERRORS: dict[str, tuple[int, str, str | None, str]] = {
    "error-400": (400, "backend", "max_tokens", "max_tokens is too large"),
    "error-429": (429, "rate_limit_exceeded", None, "Rate limit reached"),
    "error-500": (500, "server_error", None, "the engine failed"),
    "error-context": (400, "context_length_exceeded", None, "maximum context length"),
    "error-first-line": (429, "rate_limit_exceeded", None, "rate limited"),
    "unknown-model": (404, "model_not_found", None, "no model"),
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("scenario", ERRORS)
async def test_an_error_before_the_first_event_is_an_http_error(
    scenario: str, stream: bool, scripted: Scripted
) -> None:
    status, code, param, said = ERRORS[scenario]
    async with asking(over(scripted, retry={"attempts": 0})) as client:
        answer = await asked(client, scenario, stream=stream)
    error = answer.json()["error"]
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
    assert code in ("backend", error["code"])
    assert said in error["message"]
    assert error["param"] == param
    assert answer.headers.get("retry-after") == ("7" if scenario == "error-429" else None)


@pytest.mark.parametrize("scenario", ["error-mid-stream", "disconnect", "cut"])
async def test_a_stream_that_breaks_off_ends_as_failed(scenario: str, scripted: Scripted) -> None:
    async with asking(over(scripted)) as client:
        events = await streamed(client, scenario)
    assert [event["type"] for event in events[-2:]] == ["error", "response.failed"]
    final = events[-1]["response"]
    assert final["error"]["code"] == "server_error"
    assert [item["status"] for item in final["output"]] == ["incomplete"]
    assert len(scripted.asked) == 1  # nothing is sent again once something was said


async def test_what_it_gave_may_come_back_by_its_id(scripted: Scripted) -> None:
    """The ids are the gateway's own: a model of a native server leaves none of them out."""
    async with asking(over(scripted)) as client:
        response = (await asked(client, "reasoning-tool", **TOOLS)).json()
    assert [item["type"] for item in response["output"]] == ["reasoning", "function_call"]
    assert native_input(response["output"])[1] == []
