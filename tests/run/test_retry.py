"""Model calls that fail: repeated as the settings say, and never once something was handed out."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.agent import Agent
from antiphon.errors import ConnectionFailed
from antiphon.models import ModelRetryBackoffSettings, ModelRetrySettings, ModelSettings, retry_policies
from antiphon.run import Runner
from antiphon.testing import ModelStep, ScriptedModel, assistant_message

from .test_runs import plain, streamed

FAILURE = ConnectionFailed("the connection broke")
QUICK = ModelRetryBackoffSettings(initial_delay=0.0)
RETRY = ModelSettings(retry=ModelRetrySettings(max_retries=2, backoff=QUICK, policy=retry_policies.network_error()))
NEVER = ModelSettings(retry=ModelRetrySettings(max_retries=2, backoff=QUICK, policy=retry_policies.never()))

WAYS = pytest.mark.parametrize("run", [plain, streamed])


def failing_after(count: int) -> ModelStep:
    """Return a step whose stream breaks after so many events."""

    async def events(_: Any) -> Any:
        asked: Any = (None, "x", ModelSettings(), [], None, [], None)
        place = 0
        async for event in ScriptedModel([[assistant_message("abc")]]).stream_response(*asked):
            if place == count:
                raise FAILURE
            place += 1
            yield event

    return ModelStep.stream(events)


@WAYS
async def test_repeated_and_counted(run: Any) -> None:
    a = Agent("A", model=ScriptedModel([FAILURE, FAILURE, [assistant_message("hi")]]), model_settings=RETRY)
    result = await run(a, "go")
    assert (result.final_output, result.context_wrapper.usage.requests) == ("hi", 3)
    assert result.current_turn == 1 if run is streamed else True
    assert len(result.raw_responses) == 1


@WAYS
@pytest.mark.parametrize("settings", [NEVER, ModelSettings()])
async def test_not_without_a_policy_that_says_so(run: Any, settings: ModelSettings) -> None:
    a = Agent("A", model=ScriptedModel([FAILURE, [assistant_message("hi")]]), model_settings=settings)
    with pytest.raises(ConnectionFailed):
        await run(a, "go")


async def test_a_head_is_no_output() -> None:
    """The reader sees one whole response."""
    model = ScriptedModel([failing_after(2), [assistant_message("abc")]])
    result = Runner.run_streamed(Agent("A", model=model, model_settings=RETRY), "go")
    kinds = [event.data.type async for event in result.stream_events() if event.type == "raw_response_event"]
    assert kinds.count("response.created") == 1
    assert (kinds[-1], result.final_output) == ("response.completed", "abc")


async def test_nothing_is_repeated_after_output() -> None:
    model = ScriptedModel([failing_after(5), [assistant_message("abc")]])
    result = Runner.run_streamed(Agent("A", model=model, model_settings=RETRY), "go")
    deltas: list[str] = []

    async def read() -> None:
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                deltas.append(event.data.delta)  # noqa: PERF401  # what came before the error counts

    with pytest.raises(ConnectionFailed):
        await read()
    assert deltas == ["abc"]
    assert len(model.calls) == 1
