"""Runs the attempts of one request: again and again, as the policy says, until one is not to be repeated."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from tenacity import AsyncRetrying, RetryCallState, wait_exponential

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
        settings = self.settings
        if settings is None or settings.policy is None or not settings.max_retries:
            return await attempt()
        policy, most = settings.policy, settings.max_retries
        wait: float | None = None

        async def again(state: RetryCallState) -> bool:
            nonlocal wait
            context = self._context(state, most)
            wait = None
            if context is not None:
                wait = wait_for(await decide(policy, context), context, backoff(settings.delays, state))
            return wait is not None

        async def once() -> A:  # tenacity awaits nothing else than what is declared `async`
            return await attempt()

        return await AsyncRetrying(sleep=asyncio.sleep, retry=again, wait=lambda state: wait or 0.0, reraise=True)(once)

    def _context(self, state: RetryCallState, most: int) -> RetryPolicyContext | None:
        """Return what the policy is told; None where it is not asked, since nothing may be repeated."""
        if state.outcome is None or state.outcome.failed:
            return None  # what an attempt raises is ours or the consumer's
        attempted: Attempted = state.outcome.result()
        error, number = attempted.failure, state.attempt_number
        if not isinstance(error, Exception) or number > most:
            return None
        stored = (self.previous_response_id, self.conversation_id)
        advice = self.advise(ModelRetryAdviceRequest(error, number, self.stream, *stored))
        normalized = (advice and advice.normalized) or normalize(error)
        if normalized.is_abort or (advice and advice.replay_safety == "unsafe"):
            return None
        return RetryPolicyContext(error, number, most, self.stream, normalized, advice, *stored)


def wait_for(decision: RetryDecision, context: RetryPolicyContext, usual: float) -> float | None:
    """Return the seconds until the next attempt: as the policy says, else the provider, else as usual.

    None where there is none.
    """
    asked = context.asked_wait
    if not decision.retry or (decision.delay in (None, asked) and (asked or 0.0) > LONGEST_WAIT):
        return None
    told = asked if decision.delay is None else decision.delay
    return usual if told is None else max(told, 0.0)


def backoff(settings: ModelRetryBackoffSettings, state: RetryCallState) -> float:
    """Return the seconds to wait after the attempt that `state` is about."""
    initial = INITIAL if settings.initial_delay is None else settings.initial_delay
    most = MOST if settings.max_delay is None else settings.max_delay
    multiplier = MULTIPLIER if settings.multiplier is None else settings.multiplier
    jitter = 0.0 if settings.jitter is False else JITTER
    delay = wait_exponential(initial, most, multiplier)(state)
    return float(min(delay * random.uniform(1 - jitter, 1 + jitter), most))
