"""Model calls that are tried again, for models that do not do it by themselves.

    attempt, attempt, … -> the one that counts -> its answer | its events

A stream is tried again only while nothing of it was handed out: its head goes out together with what follows it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from antiphon.models.interface import Model, ModelResponse
from antiphon.models.retry import ModelRetrySettings
from antiphon.models.retrying import Retrying

# What is held until something else comes: the head, and the end of a response that failed before its first item.
HELD = frozenset({"response.created", "response.queued", "response.in_progress", "error", "response.failed"})


@dataclass(slots=True)
class Attempt:
    """One attempt: an answer, or the events that came so far and those that follow, or why there is none of it."""

    answer: ModelResponse | None = None
    held: list[Any] = field(default_factory=list[Any])
    rest: AsyncGenerator[Any, None] | None = None
    failure: BaseException | None = None


@dataclass(slots=True)
class Attempts:
    """The attempts of one model call; `failed` is how many came to nothing before the last."""

    model: Model
    settings: ModelRetrySettings
    asked: tuple[Any, ...]
    more: dict[str, Any]
    failed: int = -1

    async def answer(self) -> ModelResponse:
        """Return the answer. Its usage counts the attempts that failed too."""
        attempt = await self._tried(self._whole, stream=False)
        if attempt.answer is None:
            raise attempt.failure or AssertionError("an attempt has an answer or a failure")
        attempt.answer.usage.requests += self.failed
        return attempt.answer

    async def events(self) -> AsyncGenerator[Any, None]:
        """Yield the events of the attempt that counts. What it failed with is raised after them."""
        attempt = await self._tried(self._begun, stream=True)
        for event in attempt.held:
            yield event
        if attempt.failure is not None:
            raise attempt.failure
        if attempt.rest is not None:
            async with aclosing(attempt.rest) as rest:
                async for event in rest:
                    yield event

    async def _tried(self, one: Callable[[], Awaitable[Attempt]], *, stream: bool) -> Attempt:
        async def attempt() -> Attempt:
            self.failed += 1
            return await one()

        stored = (self.more.get("previous_response_id"), self.more.get("conversation_id"))
        how: Retrying[Attempt] = Retrying(self.settings, self.model.get_retry_advice, stream, *stored)
        return await how.run(attempt)

    async def _whole(self) -> Attempt:
        try:
            return Attempt(await self.model.get_response(*self.asked, **self.more))
        except Exception as error:  # noqa: BLE001  # the policy says what is to be done about it
            return Attempt(failure=error)

    async def _begun(self) -> Attempt:
        rest = _closed(self.model.stream_response(*self.asked, **self.more))
        attempt = Attempt(rest=rest)
        try:
            async for event in rest:
                attempt.held.append(event)
                if event.type not in HELD:
                    return attempt
            attempt.rest = None
        except Exception as error:  # noqa: BLE001  # as above
            attempt.rest, attempt.failure = None, error
        return attempt


def attempts_of(
    model: Model, settings: ModelRetrySettings | None, asked: tuple[Any, ...], more: dict[str, Any]
) -> Attempts | None:
    """Return the attempts of a call; None where it is made once, or the model repeats it by itself."""
    if settings is None or settings.policy is None or not settings.max_retries:
        return None
    from antiphon.models.call import CallModel
    from antiphon.models.fallback import FallbackModel

    return None if isinstance(model, CallModel | FallbackModel) else Attempts(model, settings, asked, more)


async def _closed(events: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
    """Yield the events; they are closed at the end, however that comes."""
    async with closing(events):
        async for event in events:
            yield event


@asynccontextmanager
async def closing(events: AsyncIterator[Any]) -> AsyncGenerator[AsyncIterator[Any], None]:
    """Give the events, and close them at the end; a model's own iterator may have nothing to close."""
    close = getattr(events, "aclose", None)
    try:
        yield events
    finally:
        if close is not None:
            await close()
