"""`ModelCall`: one call of a model as a value, and `CallModel`: a model that takes it so."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from .interface import Model, ModelResponse, ModelTracing
from .params import create_params

if TYPE_CHECKING:
    from .settings import ModelSettings


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What a runner says to a model, in the words of `Model.get_response`."""

    system_instructions: str | None
    input: str | list[Any]
    model_settings: ModelSettings
    tools: Sequence[Any] = ()
    output_schema: Any = None
    handoffs: Sequence[Any] = ()
    tracing: ModelTracing = ModelTracing.DISABLED
    previous_response_id: str | None = None
    conversation_id: str | None = None
    prompt: Any = None

    def params(self) -> dict[str, Any]:
        """Return it as create parameters of the Responses API. Raises BadInput for a tool or a schema that is none."""
        said = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "tracing"}
        return create_params(**said)


class CallModel(Model):
    """A model that takes a call as one value. The child says how it answers, whole and streamed."""

    async def get_response(self, *said: Any, **more: Any) -> ModelResponse:
        """Return the answer. Raises a ProviderError where it failed."""
        return await self.answer(ModelCall(*said, **more))

    async def stream_response(self, *said: Any, **more: Any) -> AsyncIterator[Any]:
        """Yield the events. What fails before the first item raises at once; later, after the last event."""
        async with aclosing(self.events(ModelCall(*said, **more))) as events:
            async for event in events:
                yield event

    @abstractmethod
    async def answer(self, call: ModelCall) -> ModelResponse:
        """Return the answer to a call. Raises a ProviderError where it failed."""

    @abstractmethod
    def events(self, call: ModelCall) -> AsyncGenerator[Any, None]:
        """Yield the events of the answer to a call, as `stream_response` does."""
