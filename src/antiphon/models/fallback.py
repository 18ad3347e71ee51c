"""`FallbackModel`: a chain of models, of which the next one is asked where one fails.

A stream is safe to move to another model as long as nothing of it was handed out: its head (created, in_progress) goes
out together with its first item. What fails after that is raised, since no reader can take back what was read.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from typing import Any

from antiphon import errors
from antiphon.backend import close
from antiphon.logger import logger
from antiphon.request.styles import style_of
from antiphon.stream.accumulate import HEADS, TERMINALS
from antiphon.stream.faults import redact

from .errors import failure_in
from .exchange import counted
from .interface import Model, ModelProvider, ModelResponse
from .multi_provider import MultiProvider
from .retry import ModelRetryAdvice, ModelRetryAdviceRequest
from .usage import Usage

# What another model may still answer: all that a provider does wrong, and what is too long for a model or names none. A
# request that is wrong by itself is so everywhere.
ELSEWHERE: tuple[type[Exception], ...] = (
    errors.ConnectionFailed,
    errors.TimedOut,
    errors.BadAnswer,
    errors.RateLimited,
    errors.AuthenticationFailed,
    errors.ServerFailed,
    errors.ContextLengthExceeded,
    errors.NotFound,
)


class FallbackModel(Model):
    """Models in order of preference: each request is put to the first, and where that fails to the next.

    `models`: models, or names for `provider` (a `MultiProvider` if none is given). `on`: the errors after which the next
    model is asked; all others, and those of the last model, are raised. Each model retries by its own settings first.
    The requests of models that failed are counted in the usage.

    Raises BadInput for an empty list.
    """

    def __init__(
        self,
        models: Sequence[Model | str],
        *,
        provider: ModelProvider | None = None,
        on: tuple[type[Exception], ...] = ELSEWHERE,
    ) -> None:
        if isinstance(models, str) or not models:
            raise errors.BadInput(f"models={models!r}: it is a list of at least one model, or name of one")
        self._provider = provider
        self.models = tuple(self._found(one) for one in models)
        self.on = on

    def __repr__(self) -> str:
        return f"FallbackModel({', '.join(map(repr, self.models))})"

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Return the answer of the first model that has one."""
        for failed, model in enumerate(self.models):
            try:
                answer = await model.get_response(*args, **kwargs)
            except self.on as error:
                self._go_on(error, failed)
            else:
                answer.usage.requests += failed
                return answer
        raise AssertionError("the last model answers or raises")

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Yield the events of the first model whose stream gets to its first item or to a good end."""
        for failed, model in enumerate(self.models):
            begun, last = False, failed + 1 == len(self.models)
            try:
                async with aclosing(_held_back(model.stream_response(*args, **kwargs), last=last)) as events:
                    async for event in events:
                        begun = True
                        yield _with_failed(event, failed)
                return
            except self.on as error:
                if begun:
                    raise
                self._go_on(error, failed)

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        """Return what the first model that has advice says."""
        return next(filter(None, (model.get_retry_advice(request) for model in self.models)), None)

    async def close(self) -> None:
        """Close all models, also where one of them fails at it: then the first failure is raised."""
        async with AsyncExitStack() as stack:
            for model in reversed(self.models):
                stack.push_async_callback(model.close)

    def _found(self, model: Model | str) -> Model:
        if isinstance(model, Model):
            return model
        self._provider = self._provider or MultiProvider()
        return self._provider.get_model(model)

    def _go_on(self, error: Exception, failed: int) -> None:
        """Log that the next model is asked. Raises `error` again where there is none."""
        if failed + 1 == len(self.models):
            raise error
        told = redact(f"{type(error).__name__}: {error}"[:200])
        logger.warning("%r failed (%s): %r is asked", self.models[failed], told, self.models[failed + 1])


async def _held_back(events: AsyncIterator[Any], *, last: bool) -> AsyncGenerator[Any, None]:
    """Yield the same events, the head not before what comes after it. A stream that fails at once yields none: its
    `error` and `response.failed` wait for what its model raises. Where that is nothing, and the model is not the last,
    what it failed with is raised here."""
    head: list[Any] = []
    begun = False
    try:
        async for event in events:
            begun = begun or _kind(event) not in (*HEADS, "error", "response.failed")
            if not begun:
                head.append(event)
                continue
            for one in head:
                yield one
            head.clear()
            yield event
        if not (begun or last):
            raise _unsaid(head)
        for one in head:
            yield one
    finally:
        with suppress(RuntimeError):  # it is being closed already
            await close(events)


def _unsaid(head: Sequence[Any]) -> Exception:
    """Return the error of a stream that ended without an item and without raising."""
    final = next((event for event in head if _kind(event) == "response.failed"), None)
    if final is None:
        return errors.BadAnswer("the stream ended before an item and before a last event", code="server_error")
    return failure_in(style_of(final).read(final)["response"])


def _kind(event: Any) -> str:
    return style_of(event).kind(event)


def _with_failed(event: Any, failed: int) -> Any:
    """Return the event; in a terminal one the requests of the models that failed are counted."""
    if not failed or _kind(event) not in TERMINALS:
        return event
    return counted(event, Usage.of(style_of(event).read(event)["response"]).requests + failed)
