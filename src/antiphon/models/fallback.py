"""`FallbackModel`: a chain of models, of which the next one is asked where one fails.

A stream is safe to move to another model as long as nothing of it was handed out: its head (created, in_progress) goes
out together with its first item. What fails after that is raised, since no reader can take back what was read.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from antiphon import errors
from antiphon.backend import close
from antiphon.backend.failed import failure_in
from antiphon.logger import logger
from antiphon.request.styles import style_of
from antiphon.stream.accumulate import TERMINALS
from antiphon.stream.faults import redact

from .exchange import begins, noted
from .interface import Model, ModelProvider, ModelResponse, close_all
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
            async with _closing(model.stream_response(*args, **kwargs)) as events:
                head: list[Any] = []
                try:
                    if not await begins(events, head) and failed + 1 < len(self.models):
                        raise _unsaid(head)
                except self.on as error:
                    self._go_on(error, failed)
                    continue
                for event in head:
                    yield _with_failed(event, failed)
                async for event in events:
                    yield _with_failed(event, failed)
                return

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        """Return what the first model that has advice says."""
        return next(filter(None, (model.get_retry_advice(request) for model in self.models)), None)

    async def close(self) -> None:
        """Close all models, also where one of them fails at it."""
        await close_all(model.close for model in self.models)

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


@asynccontextmanager
async def _closing(events: AsyncIterator[Any]) -> AsyncGenerator[AsyncIterator[Any], None]:
    """Give the events, and close them at the end."""
    try:
        yield events
    finally:
        with suppress(RuntimeError):  # it is being closed already
            await close(events)


def _unsaid(head: Sequence[Any]) -> Exception:
    """Return the error of a stream that ended without an item and without raising."""
    final = next((event for event in head if style_of(event).kind(event) == "response.failed"), None)
    if final is None:
        return errors.BadAnswer("the stream ended before an item and before a last event", code="server_error")
    return failure_in(style_of(final).read(final)["response"])


def _with_failed(event: Any, failed: int) -> Any:
    """Return the event; in a terminal one the requests of the models that failed are counted."""
    if not failed or style_of(event).kind(event) not in TERMINALS:
        return event
    return noted(event, Usage.of(style_of(event).read(event)["response"]).requests + failed)
