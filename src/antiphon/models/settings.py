"""`ModelSettings`: what a model is asked for beside its input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from antiphon.errors import BadInput
from antiphon.stream.chunk import fields as held_by
from antiphon.stream.chunk import plain

from .retry import ModelRetrySettings

UNTRACED = frozenset({"extra_query", "extra_body", "extra_headers", "extra_args", "preserve_raw_usage"})


@dataclass
class MCPToolChoice:
    """A `tool_choice`: the tool of a hosted MCP server that the model has to call."""

    server_label: str
    name: str


@dataclass
class ModelSettings:
    """What a model is asked for. None: nothing is said, and the provider decides.

    `tool_choice`: "auto", "required", "none", the name of a tool, or the API's object. `max_tokens`: of output.
    `reasoning`: the API's object or a mapping. `include_usage` False: a stream is asked for without its usage.
    `extra_body`, `extra_args`: further keys of the request's body. `retry`: when to try again. `timeout`: seconds that
    one attempt may take.
    """

    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    truncation: Literal["auto", "disabled"] | None = None
    max_tokens: int | None = None
    reasoning: Any = None
    verbosity: Literal["low", "medium", "high"] | None = None
    metadata: dict[str, str] | None = None
    store: bool | None = None
    prompt_cache_retention: Literal["in_memory", "24h"] | None = None
    include_usage: bool | None = None
    response_include: list[str] | None = None
    top_logprobs: int | None = None
    extra_query: Mapping[str, Any] | None = None
    extra_body: Any = None
    extra_headers: Mapping[str, Any] | None = None
    extra_args: dict[str, Any] | None = None
    retry: ModelRetrySettings | None = None
    context_management: list[Any] | None = None
    prompt_cache_options: Any = None
    preserve_raw_usage: bool | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        self.retry = ModelRetrySettings.of(self.retry)
        if self.timeout is not None and not self.timeout > 0:  # nor NaN
            raise BadInput(f"timeout is {self.timeout!r}: it is seconds, more than 0")

    def resolve(self, override: ModelSettings | Mapping[str, Any] | None) -> ModelSettings:
        """Return these settings with what `override` says over them; `extra_args` and `retry` are merged."""
        if override is None:
            return self
        told = override if isinstance(override, ModelSettings) else type(self).of(override)
        changes = {one.name: value for one in fields(told) if (value := getattr(told, one.name)) is not None}
        if self.extra_args and told.extra_args:
            changes["extra_args"] = {**self.extra_args, **told.extra_args}
        if self.retry is not None:
            changes["retry"] = self.retry.resolve(told.retry)
        return replace(self, **changes)

    @classmethod
    def of(cls, settings: Any) -> ModelSettings:
        """Return the settings that a mapping has, or an object with fields of these names. None has none.

        Raises BadInput for a key of a mapping that is no setting.
        """
        if settings is None or isinstance(settings, ModelSettings):
            return settings or cls()
        names = {one.name for one in fields(cls)}
        given: Mapping[str, Any] = held_by(settings)
        unknown = sorted(name for name in given if name not in names) if isinstance(settings, Mapping) else []
        if unknown:
            raise BadInput(f"there is no setting {', '.join(unknown)}; there are: {', '.join(sorted(names))}")
        return cls(**{name: value for name, value in given.items() if name in names})

    def to_json_dict(self) -> dict[str, Any]:
        """Return the settings as JSON data, None included; of `retry` all but the policy."""
        held = {one.name: plain(getattr(self, one.name)) for one in fields(self) if one.name != "retry"}
        retry = None if self.retry is None else self.retry.to_json_dict()
        return {one.name: retry if one.name == "retry" else held[one.name] for one in fields(self)}

    def to_traceable_dict(self) -> dict[str, Any]:
        """Return the settings as JSON data without what goes to the provider as it is."""
        return {name: value for name, value in self.to_json_dict().items() if name not in UNTRACED}
