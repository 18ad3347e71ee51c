"""What is tried again, when, and how often; what is not, once something was handed out."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import openai
import pytest

from antiphon import BadInput
from antiphon.errors import AuthenticationFailed, BadRequest, ConnectionFailed, RateLimited, ServerFailed, TimedOut
from antiphon.models import (
    ChatCompletionsModel,
    ModelResponse,
    ModelRetryAdvice,
    ModelRetryBackoffSettings,
    ModelRetryNormalizedError,
    ModelRetrySettings,
    ModelSettings,
    ModelTracing,
    RetryDecision,
    RetryPolicyContext,
    Usage,
    retry_policies,
)
from antiphon_conformance import check
from antiphon_providers.backends import HttpBackend
from tests.providers.backends.loopback import Act, Request, Script, answer, chunked, data, serve
from tests.providers.backends.loopback import text as wire_text

from .scripted import HANG, Scripted, Turn, chunk, collect, failing, text

REQUEST = {"input": "hello"}
AT_ONCE = {"initial_delay": 0}
SLOW = RateLimited("slow down", status_code=429, retry_after=0.0)
BROKEN = ConnectionFailed("the connection broke")


def retrying(policy: Any, most: int = 2, **backoff: Any) -> ModelRetrySettings:
    return ModelRetrySettings(most, backoff or AT_ONCE, policy)


def over(*turns: Turn, retry: ModelRetrySettings | None = None) -> tuple[ChatCompletionsModel, Scripted]:
    backend = Scripted(turns)
    return ChatCompletionsModel("tiny", backend=backend, retry=retry), backend


async def listen(model: ChatCompletionsModel, settings: ModelSettings) -> list[Any]:
    said = (None, "hello", settings, [], None, [], ModelTracing.DISABLED)
    return [event async for event in model.stream_response(*said)]


SUGGESTED = retry_policies.provider_suggested()
IN_STREAM = {"error": {"code": 503, "message": "overloaded"}}
INVISIBLE = {
    "refused": failing(SLOW),
    "no connection": failing(BROKEN),
    "broken after the head": failing(BROKEN, chunk({"role": "assistant", "content": ""})),
    "an error object": Turn([chunk({"role": "assistant"}), IN_STREAM], IN_STREAM),
    "nothing came": Turn([], None),
}


@pytest.mark.parametrize("name", INVISIBLE)
async def test_what_showed_nothing_is_tried_again(name: str) -> None:
    model, backend = over(INVISIBLE[name], INVISIBLE[name], text("Hello"), retry=retrying(SUGGESTED))
    events = [event async for event in await model.create(REQUEST, stream=True)]
    assert check(events).ok
    assert len(backend.bodies) == 3
    assert [event.type for event in events].count("response.created") == 1
    assert Usage.of(events[-1].response).requests == 3
    assert events[-1].response.output[0].content[0].text == "Hello"


@pytest.mark.parametrize("style", ["dict", "sse"])
async def test_the_requests_are_counted_in_each_style(style: Any) -> None:
    model, _ = over(failing(SLOW), text("Hello"), retry=retrying(SUGGESTED))
    stream = await model.create(REQUEST, stream=True, events=style)
    events = [event async for event in stream]
    assert (stream.requests, stream.response["provider_data"]["requests"]) == (2, 2)
    last = events[-1]
    assert (b'"requests":2' in last) if style == "sse" else (last["response"]["provider_data"]["requests"] == 2)


async def test_whole_answers_are_tried_again_and_counted() -> None:
    model, backend = over(failing(SLOW), text("Hello"))
    settings = ModelSettings(retry=retrying(SUGGESTED))
    response = await model.get_response(None, "hello", settings, [], None, [], ModelTracing.DISABLED)
    assert (response.usage.requests, len(backend.bodies)) == (2, 2)
    streamed, _ = over(failing(SLOW), text("Hello"))
    events = await listen(streamed, settings)
    assert ModelResponse.of(events[-1].response).usage == response.usage


async def test_what_was_handed_out_is_never_repeated() -> None:
    model, backend = over(failing(BROKEN, chunk({"content": "Hel"})), text("Hello"), retry=retrying(SUGGESTED, 5))
    events: list[Any] = []
    stream = await model.create(REQUEST, stream=True)
    with pytest.raises(ConnectionFailed):
        await collect(stream, events)
    assert check(events).ok
    assert len(backend.bodies) == 1


async def test_the_last_failure_is_what_is_raised() -> None:
    model, backend = over(failing(SLOW), failing(BROKEN), retry=retrying(SUGGESTED))
    with pytest.raises(ConnectionFailed):
        await model.create(REQUEST, stream=True)
    assert len(backend.bodies) == 3


NOT_RETRIED: dict[str, tuple[ModelRetrySettings | None, Exception]] = {
    "no settings": (None, SLOW),
    "no policy": (ModelRetrySettings(3), SLOW),
    "no retries": (ModelRetrySettings(None, policy=SUGGESTED), SLOW),
    "the key is wrong": (retrying(SUGGESTED), AuthenticationFailed("no", status_code=401)),
    "it asks for too long a wait": (retrying(SUGGESTED), RateLimited("slow down", retry_after=3600.0)),
    "never": (retrying(retry_policies.never()), SLOW),
    "an error that is nobody's": (retrying(SUGGESTED), ZeroDivisionError()),
}


@pytest.mark.parametrize("name", NOT_RETRIED)
async def test_what_is_not_tried_again(name: str) -> None:
    settings, error = NOT_RETRIED[name]
    model, backend = over(failing(error), text("Hello"), retry=settings)
    with pytest.raises(type(error)):
        await model.create(REQUEST, stream=True)
    assert len(backend.bodies) == 1


# --- policies --------------------------------------------------------------------------------------------------------


def no(context: RetryPolicyContext) -> bool:
    return False


async def later(context: RetryPolicyContext) -> RetryDecision:
    return RetryDecision(True, 0.0, "later")


ASKED = httpx2.Request("POST", "http://127.0.0.1:1/v1")
UNAVAILABLE = ServerFailed("away", status_code=503)
DECISIONS = [
    (retry_policies.network_error(), BROKEN, True),
    (retry_policies.network_error(), TimedOut("too long"), True),
    (retry_policies.network_error(), UNAVAILABLE, False),
    (retry_policies.network_error(), ConnectionResetError("reset"), True),
    (retry_policies.network_error(), TimeoutError("too long"), True),
    (retry_policies.network_error(), openai.APIConnectionError(request=ASKED), True),
    (retry_policies.network_error(), openai.APITimeoutError(request=ASKED), True),
    (retry_policies.network_error(), httpx2.ReadError("broken"), True),
    (retry_policies.network_error(), httpx2.ConnectTimeout("too long"), True),
    (retry_policies.network_error(), ValueError("no"), False),
    (retry_policies.http_status([503]), UNAVAILABLE, True),
    (retry_policies.http_status([500]), UNAVAILABLE, False),
    (retry_policies.retry_after(), SLOW, True),
    (retry_policies.retry_after(), UNAVAILABLE, False),
    (retry_policies.provider_suggested(), UNAVAILABLE, True),
    (retry_policies.provider_suggested(), BadRequest("no", status_code=400), False),
    (retry_policies.all(later, retry_policies.http_status([503])), UNAVAILABLE, True),
    (retry_policies.all(later, no), UNAVAILABLE, False),
    (retry_policies.all(), UNAVAILABLE, False),
    (retry_policies.any(no, later), UNAVAILABLE, True),
    (retry_policies.any(no, no), UNAVAILABLE, False),
    (retry_policies.any(), UNAVAILABLE, False),
]


@pytest.mark.parametrize(("policy", "error", "retried"), DECISIONS)
async def test_policies(policy: Any, error: Exception, retried: bool) -> None:
    model, backend = over(failing(error), text("Hello"), retry=retrying(policy))
    if retried:
        await model.create(REQUEST, stream=True)
    else:
        with pytest.raises(type(error)):
            await model.create(REQUEST, stream=True)
    assert len(backend.bodies) == 1 + retried


async def test_what_a_policy_is_told() -> None:
    told: list[RetryPolicyContext] = []

    def policy(context: RetryPolicyContext) -> bool:
        told.append(context)
        return True

    model, _ = over(failing(SLOW), failing(TimedOut("too long")), text("Hello"), retry=retrying(policy, 4))
    stream = await model.create({**REQUEST, "previous_response_id": "resp_1"}, stream=True)
    await stream.aclose()
    first, second = told
    assert (first.attempt, first.max_retries, first.stream, first.stateful_request) == (1, 4, True, True)
    assert (first.normalized.status_code, first.normalized.retry_after) == (429, 0.0)
    assert first.provider_advice == ModelRetryAdvice(True, 0.0, reason="slow down", normalized=first.normalized)
    assert (second.attempt, second.normalized.is_timeout) == (2, True)


async def test_waiting_is_as_the_policy_says_then_the_provider_then_the_backoff(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        waited.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", note)
    backoff = {"initial_delay": 1.0, "multiplier": 3.0, "max_delay": 4.0, "jitter": False}

    async def run(error: Exception, policy: Any) -> list[float]:
        waited.clear()
        model, _ = over(*[failing(error)] * 3, text("Hello"), retry=retrying(policy, 3, **backoff))
        await model.create(REQUEST, stream=True)
        return [seconds for seconds in waited if seconds]

    asked = RateLimited("slow down", retry_after=7.0)
    assert await run(asked, lambda context: RetryDecision(True, 2.0)) == [2.0, 2.0, 2.0]
    assert await run(asked, lambda context: True) == [7.0, 7.0, 7.0]
    assert await run(UNAVAILABLE, lambda context: True) == [1.0, 3.0, 4.0]
    backoff["jitter"] = True
    first, second, third = await run(UNAVAILABLE, lambda context: True)
    assert 0.875 <= first <= 1.125
    assert 2.625 <= second <= 3.375
    assert third <= 4.0


async def wait_before_the_last(monkeypatch: pytest.MonkeyPatch, retry: ModelRetrySettings, error: Exception) -> float:
    """Return the seconds that are waited before the last of the attempts that `retry` allows."""
    waited: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        waited.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", note)
    model, _ = over(*[failing(error)] * (retry.max_retries or 0), text("Hello"), retry=retry)
    await model.create(REQUEST, stream=True)
    return [seconds for seconds in waited if seconds][-1]


LONG = {"initial_delay": 90.0, "max_delay": 600.0, "jitter": False}
STEEP = {"initial_delay": 1.0, "multiplier": 1e200, "max_delay": 4.0, "jitter": False}
# name -> settings, error, the wait before the last attempt
WAITS: dict[str, tuple[ModelRetrySettings, Exception, float]] = {
    "a long backoff of one's own": (retrying(SUGGESTED, 1, **LONG), UNAVAILABLE, 90.0),
    "a long wait that the policy says": (retrying(lambda told: RetryDecision(True, 300.0), 1), UNAVAILABLE, 300.0),
    "the policy says less than the provider": (
        retrying(lambda told: RetryDecision(True, 2.0), 1),
        RateLimited("slow down", retry_after=3600.0),
        2.0,
    ),
    "growth without bound": (retrying(SUGGESTED, 4, **STEEP), UNAVAILABLE, 4.0),
}


@pytest.mark.parametrize("name", WAITS)
async def test_only_a_provider_is_not_waited_for_too_long(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    retry, error, seconds = WAITS[name]
    assert await wait_before_the_last(monkeypatch, retry, error) == seconds


class Advised(ChatCompletionsModel):
    """A model whose provider's side gives one advice."""

    def __init__(self, advice: ModelRetryAdvice, backend: Scripted) -> None:
        super().__init__("tiny", backend=backend, retry=retrying(lambda context: True))
        self.advice = advice

    def get_retry_advice(self, request: Any) -> ModelRetryAdvice:
        return self.advice


ADVICE = {
    "go on": (ModelRetryAdvice(retry_after=0.0), 2),
    "too long a wait": (ModelRetryAdvice(retry_after=3600.0), 1),
    "it may have been done": (ModelRetryAdvice(replay_safety="unsafe"), 1),
    "it was given up": (ModelRetryAdvice(normalized=ModelRetryNormalizedError(is_abort=True)), 1),
}


@pytest.mark.parametrize("name", ADVICE)
async def test_what_the_providers_side_advises_counts_whatever_the_policy_says(name: str) -> None:
    advice, requests = ADVICE[name]
    backend = Scripted([failing(UNAVAILABLE), text("Hello")])
    model = Advised(advice, backend)
    if requests == 1:
        with pytest.raises(ServerFailed):
            await model.create(REQUEST, stream=True)
    else:
        await model.create(REQUEST, stream=True)
    assert len(backend.bodies) == requests


async def test_cancelling_ends_the_waiting() -> None:
    model, backend = over(
        failing(UNAVAILABLE), text("Hello"), retry=retrying(SUGGESTED, initial_delay=50, max_delay=50)
    )
    task = asyncio.create_task(model.create(REQUEST, stream=True))
    await backend.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(backend.bodies) == 1


async def test_cancelling_is_not_tried_again() -> None:
    model, backend = over(Turn([HANG], None), text("Hello"), retry=retrying(lambda context: True))
    task = asyncio.create_task(model.create(REQUEST, stream=True))
    await backend.asked.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (len(backend.bodies), backend.closed) == (1, 1)


async def test_over_http() -> None:
    refusal = answer({"error": {"message": "slow down"}}, "429 Too Many Requests", retry_after="0")
    head = data({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
    scripts: list[Script] = [refusal, [*chunked([head])[:-1], Act.RESET], chunked(wire_text("Hello"))]
    left = iter(scripts)

    def script(request: Request) -> Script:
        return next(left)

    async with serve(script) as server:
        model = ChatCompletionsModel("tiny", backend=HttpBackend(server.url), retry=retrying(SUGGESTED))
        events = [event async for event in await model.create(REQUEST, stream=True)]
        await model.close()
    assert check(events).ok
    assert Usage.of(events[-1].response).requests == len(server.requests) == 3


# --- settings --------------------------------------------------------------------------------------------------------


def test_settings_are_merged_and_told() -> None:
    own = ModelRetrySettings(2, {"initial_delay": 1.0, "jitter": False}, no)
    merged = own.resolve(ModelRetrySettings(backoff={"initial_delay": 3.0}))
    assert merged == ModelRetrySettings(2, ModelRetryBackoffSettings(3.0, jitter=False), no)
    assert merged.to_json_dict() == {
        "max_retries": 2,
        "backoff": {"initial_delay": 3.0, "max_delay": None, "multiplier": None, "jitter": False},
    }
    assert ModelRetrySettings(1).to_json_dict() == {"max_retries": 1, "backoff": None}
    for wrong in (-1, float("nan")):
        with pytest.raises(BadInput, match="max_delay"):
            ModelRetryBackoffSettings(max_delay=wrong)
