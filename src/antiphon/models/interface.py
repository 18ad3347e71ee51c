"""`Model` and `ModelProvider`: what a runner calls, and what comes back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from antiphon.stream.accumulate import plain
from antiphon.stream.chunk import fields

from .retry import ModelRetryAdvice, ModelRetryAdviceRequest, advise
from .usage import Usage

if TYPE_CHECKING:
    from .settings import ModelSettings


# keys of an output item that the API refuses in its input. Source: openai-python, `ResponseInputItemParam`.
OUTPUT_ONLY = frozenset({"created_by", "parsed_arguments"})
SHELL_OUTPUT_ONLY = OUTPUT_ONLY | {"status", "shell_output", "provider_data"}


def input_item(item: dict[str, Any]) -> dict[str, Any]:
    """Return an output item as an input item: what the API only gives is left out. A new dict."""
    if item.get("type") != "shell_call_output":
        return dict(_without(item, OUTPUT_ONLY))
    said: dict[str, Any] = _without(item, SHELL_OUTPUT_ONLY)
    chunks = said.get("output")
    if isinstance(chunks, list):
        said["output"] = [_without(one, OUTPUT_ONLY) for one in chunks]  # pyright: ignore[reportUnknownVariableType]
    return said


def _without(value: Any, names: frozenset[str]) -> Any:
    return {name: one for name, one in value.items() if name not in names} if isinstance(value, dict) else value  # pyright: ignore[reportUnknownVariableType]


class ModelTracing(Enum):
    """Whether a model call is traced, and with what was said in it."""

    DISABLED = 0
    ENABLED = 1
    ENABLED_WITHOUT_DATA = 2

    def is_disabled(self) -> bool:
        """Return whether nothing is traced."""
        return self is ModelTracing.DISABLED

    def include_data(self) -> bool:
        """Return whether input and output are traced too."""
        return self is ModelTracing.ENABLED


@dataclass
class ModelResponse:
    """What a model answered: `output` items as openai objects, in order.

    `status` is "completed" or "incomplete", then with the API's `incomplete_reason`. A failed response is none: it is
    raised. `response_id` is the response's, `request_id` the provider's number of the request where it is known.
    """

    output: list[Any]
    usage: Usage
    response_id: str | None
    request_id: str | None = None
    raw_usage: dict[str, Any] | None = None
    status: str = "completed"
    incomplete_reason: str | None = None

    def to_input_items(self) -> list[dict[str, Any]]:
        """Return the output as input items of the next request."""
        return [input_item(plain(item)) for item in self.output]

    @property
    def refusal(self) -> str | None:
        """What the model said where it refused; None where it did not."""
        parts = [fields(part) for item in self.output for part in fields(item).get("content") or ()]
        refused = [str(part.get("refusal") or "") for part in parts if part.get("type") == "refusal"]
        return "".join(refused) if refused else None

    @classmethod
    def of(cls, response: Any) -> ModelResponse:
        """Return what is in a response, in any style."""
        held = fields(response)
        data = fields(held.get("provider_data"))
        return cls(
            output=list(held.get("output") or ()),
            usage=Usage.of(response),
            response_id=held.get("id"),
            request_id=getattr(response, "_request_id", None),
            raw_usage=data.get("usage"),
            status=str(held.get("status") or "completed"),
            incomplete_reason=fields(held.get("incomplete_details")).get("reason"),
        )


class Model(ABC):
    """One model of one provider. Both ways of asking give the same items, the same usage and the same errors."""

    @abstractmethod
    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[Any],
        model_settings: ModelSettings,
        tools: Sequence[Any],
        output_schema: Any,
        handoffs: Sequence[Any],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None = None,
        conversation_id: str | None = None,
        prompt: Any = None,
    ) -> ModelResponse:
        """Return the answer. Raises where it failed."""

    @abstractmethod
    def stream_response(self, *said: Any, **more: Any) -> AsyncIterator[Any]:
        """Yield the events of the answer, openai objects; what is said is as for `get_response`.

        Raises where it failed, after `response.failed`.
        """

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        """Return what the provider's side says about trying again."""
        return advise(request.error)

    async def close(self) -> None:  # noqa: B027  # most models keep nothing open
        """Close what is kept open between requests."""


class ModelProvider(ABC):
    """Finds models by their names."""

    @abstractmethod
    def get_model(self, model_name: str | None) -> Model:
        """Return the model of that name; None is the default model."""

    async def aclose(self) -> None:  # noqa: B027  # as above
        """Close what the models keep open."""


class KeepingProvider(ModelProvider):
    """A provider that makes each of its models once, and closes them."""

    def __init__(self) -> None:
        self._models: dict[Hashable, Model] = {}

    def _kept(self, key: Hashable, make: Callable[[], Model]) -> Model:
        """Return the model with that key; it is made where there is none yet."""
        if key not in self._models:
            self._models[key] = make()
        return self._models[key]

    async def aclose(self) -> None:
        """Close the connections of the models."""
        await close_all(model.close for model in self._models.values())


async def close_all(closes: Iterable[Callable[[], Awaitable[None]]]) -> None:
    """Call all of `closes` in order, also where one of them fails; a failure is raised at the end."""
    async with AsyncExitStack() as stack:
        for close in reversed([*closes]):
            stack.push_async_callback(close)
