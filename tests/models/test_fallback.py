"""`FallbackModel`: who is asked after whom, and what a reader of a stream sees of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from antiphon import BadInput
from antiphon.errors import (
    AuthenticationFailed,
    BadAnswer,
    BadRequest,
    ConnectionFailed,
    ContextLengthExceeded,
    NotFound,
    RateLimited,
    ServerFailed,
    TimedOut,
)
from antiphon.models import FallbackModel, ModelResponse, ModelSettings, ModelTracing, Usage
from antiphon.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from antiphon_conformance import check

ASKED: tuple[Any, ...] = (None, "hi", ModelSettings(), [], None, [], ModelTracing.DISABLED)
GO_ON = [
    AuthenticationFailed,
    BadAnswer,
    ConnectionFailed,
    ContextLengthExceeded,
    NotFound,
    RateLimited,
    ServerFailed,
    TimedOut,
]
FINAL = [BadRequest, ValueError, asyncio.CancelledError]


def chain(*steps: Any, **options: Any) -> tuple[FallbackModel, list[ScriptedModel]]:
    models = [ScriptedModel([step]) for step in steps]
    return FallbackModel(models, **options), models


async def streamed(model: FallbackModel) -> tuple[list[Any], BaseException | None]:
    events: list[Any] = []
    try:
        async for event in model.stream_response(*ASKED):
            events.append(event)  # noqa: PERF401 -- what came before an error counts
    except BaseException as error:  # noqa: BLE001 -- CancelledError is one of the cases
        return events, error
    return events, None


async def answered(model: FallbackModel) -> ModelResponse:
    return await model.get_response(*ASKED)


@pytest.mark.parametrize("kind", GO_ON)
async def test_the_next_model_is_asked_where_one_fails(kind: type[Exception], caplog: pytest.LogCaptureFixture) -> None:
    steps = (kind("it broke"), [assistant_message("Salt.")])
    model, asked = chain(*steps)
    with caplog.at_level(logging.WARNING, "antiphon"):
        whole = await answered(model)
    assert [len(one.calls) for one in asked] == [1, 1]
    assert (whole.output, whole.usage) == ([assistant_message("Salt.")], Usage(requests=2))
    assert f"failed ({kind.__name__}: it broke)" in caplog.text
    events, error = await streamed(chain(*steps)[0])
    assert error is None
    assert check(events).findings == ()
    assert ModelResponse.of(events[-1].response) == whole


@pytest.mark.parametrize("kind", FINAL)
async def test_what_no_other_model_would_answer_is_raised_at_once(kind: type[BaseException]) -> None:
    model, asked = chain(kind("no"), [assistant_message("never")])
    with pytest.raises(kind, match="no"):
        await answered(model)
    assert [len(one.calls) for one in asked] == [1, 0]
    events, error = await streamed(chain(kind("no"), [])[0])
    assert (events, type(error)) == ([], kind)


async def test_the_errors_that_go_on_can_be_chosen() -> None:
    model, _ = chain(ValueError("x"), [], on=(ValueError,))
    assert (await answered(model)).usage == Usage(requests=2)
    with pytest.raises(ServerFailed):
        await answered(chain(ServerFailed("x"), [], on=(ValueError,))[0])


async def test_the_last_error_is_raised_where_all_fail() -> None:
    model, asked = chain(ServerFailed("first"), RateLimited("second"))
    with pytest.raises(RateLimited, match="second"):
        await answered(model)
    assert [len(one.calls) for one in asked] == [1, 1]


def broken_after(count: int) -> ModelStep:
    """Return a step whose stream breaks after so many events of an answer with a text and a call."""

    async def events(call: ModelCall) -> AsyncIterator[Any]:
        script = ScriptedModel([[assistant_message("Salt."), function_call("look", "{}", call_id="call_1")]])
        sent = 0
        async for event in script.stream_response(*ASKED):
            if sent == count:
                raise ServerFailed("it broke")
            yield event
            sent += 1

    return ModelStep.stream(events)


@pytest.mark.parametrize("count", range(12))
async def test_a_stream_moves_on_only_while_nothing_of_it_was_read(count: int) -> None:
    model, asked = chain(broken_after(count), [assistant_message("Other.")])
    events, error = await streamed(model)
    moved = count <= 2  # created and in_progress are held back
    assert [len(one.calls) for one in asked] == [1, int(moved)]
    if moved:
        assert error is None
        assert check(events).findings == ()
        assert events[-1].response.output == [assistant_message("Other.")]
        assert Usage.of(events[-1].response) == Usage(requests=2)
    else:
        assert str(error) == "it broke"
        assert len(events) == count


async def test_a_stream_that_fails_at_once_hands_nothing_out_before_the_next_one() -> None:
    async def failing(call: ModelCall) -> AsyncIterator[Any]:
        for event in await _events(ModelStep(status="failed")):
            yield event
        raise ServerFailed("said so in the stream")

    model, _ = chain(ModelStep.stream(failing), [assistant_message("Salt.")])
    events, error = await streamed(model)
    assert (error, events[-1].type) == (None, "response.completed")
    assert check(events).findings == ()
    alone, error = await streamed(chain(ModelStep.stream(failing))[0])
    assert ([event.type for event in alone], str(error)) == ([], "said so in the stream")


async def _events(step: ModelStep) -> list[Any]:
    return [event async for event in ScriptedModel([step]).stream_response(*ASKED)]


async def test_the_number_of_the_request_stays() -> None:
    async def numbered(call: ModelCall) -> AsyncIterator[Any]:
        for event in await _events(ModelStep([assistant_message("Salt.")])):
            if event.type == "response.completed":
                event.response._request_id = "req_1"
            yield event

    events, error = await streamed(chain(ServerFailed("x"), ModelStep.stream(numbered))[0])
    answer = ModelResponse.of(events[-1].response)
    assert (error, answer.request_id, answer.usage.requests) == (None, "req_1", 2)


async def test_all_models_are_closed_also_where_one_fails_at_it() -> None:
    closed: list[int] = []

    class Closing(ScriptedModel):
        async def close(self) -> None:
            closed.append(len(closed))
            if len(closed) < 3:
                raise ConnectionFailed("it is gone")

    with pytest.raises(ConnectionFailed, match="it is gone"):
        await FallbackModel([Closing(), Closing(), Closing()]).close()
    assert closed == [0, 1, 2]


async def test_leaving_a_stream_closes_the_model_that_speaks() -> None:
    closed: list[str] = []

    async def endless(call: ModelCall) -> AsyncIterator[Any]:
        try:
            for event in await _events(ModelStep([assistant_message("Salt.")])):
                yield event
            await asyncio.Event().wait()
        finally:
            closed.append("yes")

    model, _ = chain(ServerFailed("x"), ModelStep.stream(endless))
    events = model.stream_response(*ASKED)
    await anext(events)
    await events.aclose()  # type: ignore[attr-defined]
    assert closed == ["yes"]


def test_a_chain_is_a_list_of_models_or_names() -> None:
    model = FallbackModel(["http://127.0.0.1:9/v1#qwen3", ScriptedModel()])
    assert [type(one).__name__ for one in model.models] == ["ChatCompletionsModel", "ScriptedModel"]
    for wrong in ([], "gpt", ()):
        with pytest.raises(BadInput, match="list of at least one model"):
            FallbackModel(wrong)
