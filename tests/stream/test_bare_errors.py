"""Objects that are no chunks: what reports an error is one, in whatever words; and words that are no finish."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from antiphon import convert, convert_sse, to_response
from antiphon.errors import SourceError
from antiphon_conformance import check


class Case(NamedTuple):
    """An object in a stream, and the code and a part of the message of the failure that it reports."""

    sent: dict[str, Any]
    code: str
    message: str


ERRORS = {
    "detail": Case({"detail": "Model not found"}, "server_error", "Model not found"),
    "details": Case({"detail": [{"loc": ["body"], "msg": "field required"}]}, "server_error", "field required"),
    "errors": Case({"success": False, "errors": [{"code": 429, "message": "wait"}]}, "rate_limit_exceeded", "wait"),
    "message and code": Case(
        {"message": "maximum context is 8", "code": 400}, "context_length_exceeded", "context is 8"
    ),
    "message and type": Case({"type": "overloaded_error", "message": "busy"}, "server_error", "busy"),
    "message and status": Case({"message": "no such model", "status_code": 404}, "invalid_prompt", "no such model"),
    "x_groq": Case({"choices": [], "x_groq": {"id": "r", "error": "over capacity"}}, "server_error", "over capacity"),
}
# What is no error either: it says nothing.
SILENT: dict[str, dict[str, Any]] = {
    "another API's chunk": {"model": "m", "message": {"role": "assistant", "content": "x"}, "done": False},
    "no errors": {"errors": [], "success": True},
    "a detail beside choices": {"choices": [], "detail": "x"},
    "a message without a code": {"message": "keep-alive"},
    "usage": {"usage": {"prompt_tokens": 1, "completion_tokens": 1}, "message": "billed", "code": 1},
}
HELLO = {"choices": [{"index": 0, "delta": {"content": "Hello"}}]}
STOP = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def ending(*chunks: dict[str, Any]) -> dict[str, Any]:
    """Return the final response, the same from chunks and from a body that ends in `[DONE]`."""
    body = b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n"
    options: dict[str, Any] = {"events": "dict", "ids": "counted", "created_at": 0}
    events = list(convert_sse(body, **options))
    assert check(events).ok, check(events).findings
    response: dict[str, Any] = events[-1]["response"]
    if any(chunk["choices"][0].get("finish_reason") for chunk in chunks if chunk.get("choices")):
        clock = {"completed_at": response["completed_at"]}
        assert {**list(convert(chunks, **options))[-1]["response"], **clock} == response
    return response


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("before", [(), (HELLO,), (HELLO, STOP)], ids=["alone", "after text", "after the finish"])
def test_an_error_fails_the_response(name: str, before: tuple[dict[str, Any], ...]) -> None:
    case = ERRORS[name]
    response = ending(*before, case.sent)
    assert (response["status"], response["error"]["code"]) == ("failed", case.code)
    assert case.message in response["error"]["message"]


@pytest.mark.parametrize("name", SILENT)
def test_what_is_no_error(name: str) -> None:
    assert ending(HELLO, SILENT[name], STOP)["status"] == "completed"


@pytest.mark.parametrize("name", ERRORS)
def test_a_whole_answer_that_is_an_error(name: str) -> None:
    case = ERRORS[name]
    response = to_response({"choices": None, **case.sent}, events="dict")
    assert (response["status"], response["error"]["code"]) == ("failed", case.code)
    assert case.message in response["error"]["message"]


@pytest.mark.parametrize("sent", [{"id": "x", "model": "m"}, {"choices": []}, {"choices": None}])
def test_a_whole_answer_without_choices(sent: dict[str, Any]) -> None:
    assert to_response(sent, events="dict")["error"]["message"] == "the answer has no choices"
    with pytest.raises(SourceError, match="no choices"):
        to_response(sent, events="dict", raise_on_error=True)


@pytest.mark.parametrize("word", [0, False, "", None, [], {}])
def test_what_is_no_finish(word: Any) -> None:
    open_chunk = {"choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": word}]}
    (last,) = list(convert([open_chunk], events="dict"))[-1:]
    assert "finish_reason_optional" in last["response"]["error"]["message"]
