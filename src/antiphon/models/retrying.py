"""Runs the attempts of one request: again and again, as the policy says, until one is not to be repeated."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from tenacity import AsyncRetrying, RetryCallState

from .retry import (
    ModelRetryAdvice,
    ModelRetryAdviceRequest,
    ModelRetryBackoffSettings,
    ModelRetrySettings,
    RetryDecision,
    RetryPolicyContext,
    decide,
    normalize,
)

LONGEST_WAIT = 60.0  # seconds; a provider that asks for more is not asked again
INITIAL, MOST, MULTIPLIER, JITTER = 0.25, 2.0, 2.0, 0.125  # of the backoff where nothing else is said

Advise = Callable[[ModelRetryAdviceRequest], ModelRetryAdvice | None]


class Attempted(Protocol):
    """What one attempt gives: `failure` is why nothing came of it, None where something was handed out."""

    @property
    def failure(self) -> BaseException | None: ...


A = TypeVar("A", bound=Attempted)


@dataclass(frozen=True, slots=True)
class Retrying(Generic[A]):
    """When one request is tried again. `stream`, `previous_response_id`, `conversation_id`: what a policy is told."""

    settings: ModelRetrySettings | None
    advise: Advise
    stream: bool = False
    previous_response_id: str | None = None
    conversation_id: str | None = None

    async def run(self, attempt: Callable[[], Awaitable[A]]) -> A:
        """Return the attempt that counts: the first that did not fail, or that is not to be repeated.

        What an attempt raises passes; cancelling ends the waiting between two attempts too.
        """
        if self.settings is None or self.settings.policy is None or not self.settings.max_retries:
            return await attempt()
        run = _Run(self, self.settings)
        attempts = AsyncRetrying(sleep=asyncio.sleep, retry=run.again, wait=run.wait, reraise=True)

        async def once() -> A:  # tenacity awaits nothing else than what is declared `async`
            return await attempt()

        return await attempts(once)


class _Run:
    """The attempts so far, as tenacity asks about them."""

    def __init__(self, how: Retrying[Any], settings: ModelRetrySettings) -> None:
        self._how, self._settings = how, settings
        self._decision = RetryDecision(False)

    async def again(self, state: RetryCallState) -> bool:
        """Return whether to try again after this attempt."""
        error = self._failure(state)
        most = self._settings.max_retries or 0
        policy = self._settings.policy
        if policy is None or not isinstance(error, Exception) or state.attempt_number > most:
            return False
        self._decision = await decide(policy, self._context(error, state.attempt_number, most))
        return self._decision.retry and self.wait(state) <= LONGEST_WAIT

    def wait(self, state: RetryCallState) -> float:
        """Return the seconds to wait: as the policy says, else the provider, else the backoff."""
        asked = self._decision.delay
        if asked is None and (error := self._failure(state)) is not None:
            asked = normalize(error).retry_after
        return backoff(self._settings.delays, state.attempt_number) if asked is None else max(asked, 0.0)

    def _failure(self, state: RetryCallState) -> BaseException | None:
        if state.outcome is None or state.outcome.failed:
            return None  # what an attempt raises is ours or the consumer's
        attempted: Attempted = state.outcome.result()
        return attempted.failure

    def _context(self, error: Exception, attempt: int, most: int) -> RetryPolicyContext:
        how = self._how
        stored = (how.previous_response_id, how.conversation_id)
        advice = how.advise(ModelRetryAdviceRequest(error, attempt, how.stream, *stored))
        normalized = (advice and advice.normalized) or normalize(error)
        return RetryPolicyContext(error, attempt, most, how.stream, normalized, advice, *stored)


def backoff(settings: ModelRetryBackoffSettings, attempt: int) -> float:
    """Return the seconds to wait after attempt number `attempt`, from 1."""
    initial = INITIAL if settings.initial_delay is None else settings.initial_delay
    most = MOST if settings.max_delay is None else settings.max_delay
    multiplier = MULTIPLIER if settings.multiplier is None else settings.multiplier
    delay = min(initial * multiplier ** (attempt - 1), most)
    jitter = 0.0 if settings.jitter is False else JITTER
    return float(min(delay * random.uniform(1 - jitter, 1 + jitter), most))
