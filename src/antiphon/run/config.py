"""`RunConfig`: what holds for a whole run, whatever its agents say; and what its callbacks are given."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Generic, Literal, TypeAlias, get_args

from antiphon.exceptions import UserError
from antiphon.models.interface import Model, ModelProvider
from antiphon.models.multi_provider import MultiProvider
from antiphon.models.settings import ModelSettings

from .agent import Agent, check_field
from .awaiting import MaybeAwaitable
from .context import RunContextWrapper, TContext

DEFAULT_MAX_TURNS = 10
SENSITIVE_VARIABLE = "OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA"

ReasoningItemIdPolicy: TypeAlias = Literal["preserve", "omit"]
ToolNotFoundBehavior: TypeAlias = Literal["raise_error", "return_error_to_model"]
ToolNameCollisionPolicy: TypeAlias = Literal["warn", "error"]
OnIncomplete: TypeAlias = Literal["raise", "return"]


@dataclass
class ModelInputData:
    """What a model is about to be given."""

    input: list[Any]
    instructions: str | None


@dataclass
class CallModelData(Generic[TContext]):
    """What `call_model_input_filter` is given: the data, the agent whose call it is, and the caller's context."""

    model_data: ModelInputData
    agent: Agent[TContext]
    context: TContext | None


@dataclass(frozen=True)
class ToolErrorFormatterArgs(Generic[TContext]):
    """What `tool_error_formatter` is given: why the model gets no output of a tool, and what it would be told."""

    kind: Literal["approval_rejected", "tool_not_found"]
    tool_type: Literal["function", "computer", "shell", "apply_patch", "custom"]
    tool_name: str
    call_id: str
    default_message: str
    run_context: RunContextWrapper[TContext]


CallModelInputFilter: TypeAlias = Callable[[CallModelData[Any]], MaybeAwaitable[ModelInputData]]
SessionInputCallback: TypeAlias = Callable[[list[Any], list[Any]], MaybeAwaitable[list[Any]]]
ToolErrorFormatter: TypeAlias = Callable[[ToolErrorFormatterArgs[Any]], MaybeAwaitable[str | None]]


@dataclass
class ToolExecutionConfig:
    """How function tools run. At most `max_function_tool_concurrency` at once; None: all.

    `pre_approval_tool_input_guardrails`: a call's input guardrails are asked before anybody is asked to approve it.
    """

    max_function_tool_concurrency: int | None = None
    pre_approval_tool_input_guardrails: bool = False

    def __post_init__(self) -> None:
        most = self.max_function_tool_concurrency
        if most is not None and most < 1:
            raise ValueError(f"max_function_tool_concurrency is {most}: it is None or at least 1")


def _sensitive() -> bool:
    return os.environ.get(SENSITIVE_VARIABLE, "true").strip().lower() in ("1", "true", "yes", "on")


@dataclass
class RunConfig:
    """What holds for a whole run.

    `model` is used instead of every agent's; `model_settings` are laid over the agents'. `handoff_input_filter`,
    `nest_handoff_history` and `handoff_history_mapper` hold where a handoff says nothing itself.
    `call_model_input_filter` sees and may change what each model call is given. `on_incomplete`: whether an answer
    that was cut off is raised, or what came of it returned. `check_events`: the events of each model call are held to
    the rules of the suite that is installed. `workflow_name`, `group_id`, `trace_id` and `trace_metadata` are told by the
    run's span; `tracing` says nothing. `sandbox` is not supported.
    """

    model: str | Model | None = None
    model_provider: ModelProvider = field(default_factory=MultiProvider)
    model_settings: ModelSettings | None = None
    handoff_input_filter: Any = None
    nest_handoff_history: bool = False
    handoff_history_mapper: Any = None
    input_guardrails: list[Any] | None = None
    output_guardrails: list[Any] | None = None
    tracing_disabled: bool = False
    tracing: Any = None
    trace_include_sensitive_data: bool = field(default_factory=_sensitive)
    workflow_name: str = "Agent workflow"
    trace_id: str | None = None
    group_id: str | None = None
    trace_metadata: dict[str, Any] | None = None
    session_input_callback: SessionInputCallback | None = None
    call_model_input_filter: CallModelInputFilter | None = None
    tool_error_formatter: ToolErrorFormatter | None = None
    session_settings: Any = None
    reasoning_item_id_policy: ReasoningItemIdPolicy | None = None
    sandbox: Any = None
    tool_execution: ToolExecutionConfig | None = None
    tool_not_found_behavior: ToolNotFoundBehavior = "raise_error"
    tool_name_collision_policy: ToolNameCollisionPolicy = "warn"
    on_incomplete: OnIncomplete = "raise"
    check_events: bool = False

    def __post_init__(self) -> None:
        check_field("RunConfig", "model", self.model)
        if self.model_settings is not None:
            check_field("RunConfig", "model_settings", self.model_settings)
            self.model_settings = ModelSettings.of(self.model_settings)
        if isinstance(self.tool_execution, Mapping):
            held: dict[str, Any] = dict(self.tool_execution)  # pyright: ignore[reportUnknownArgumentType]  # a caller's mapping
            self.tool_execution = ToolExecutionConfig(**held)
        _one_of("tool_not_found_behavior", self.tool_not_found_behavior, ToolNotFoundBehavior)
        _one_of("tool_name_collision_policy", self.tool_name_collision_policy, ToolNameCollisionPolicy)
        _one_of("on_incomplete", self.on_incomplete, OnIncomplete)
        if self.reasoning_item_id_policy is not None:
            _one_of("reasoning_item_id_policy", self.reasoning_item_id_policy, ReasoningItemIdPolicy)
        if self.sandbox is not None:
            raise UserError("RunConfig has no sandbox: run tools in one of your own, or leave the option out")

    @classmethod
    def of(cls, given: RunConfig | Mapping[str, Any] | None) -> RunConfig:
        """Return the configuration that was given, also as a mapping; None is the default one.

        Raises UserError for a key that is no option.
        """
        if given is None or isinstance(given, RunConfig):
            return given or cls()
        names = {one.name for one in fields(cls)}
        unknown = sorted(set(given) - names)
        if unknown:
            raise UserError(f"run_config has no option {', '.join(unknown)}; there are: {', '.join(sorted(names))}")
        return cls(**given)


def _one_of(name: str, value: Any, allowed: Any) -> None:
    if value not in get_args(allowed):
        raise UserError(f"{name} is {value!r}: it is one of {', '.join(map(repr, get_args(allowed)))}")


# --- what a run does about certain errors ----------------------------------------------------------------------------


@dataclass
class RunErrorData:
    """How far a run had come: `history` is what its next model call would be given, `output` what it brought forth."""

    input: str | list[Any]
    new_items: list[Any]
    history: list[Any]
    output: list[Any]
    raw_responses: list[Any]
    last_agent: Agent[Any]


@dataclass
class RunErrorHandlerInput(Generic[TContext]):
    """What an error handler is given."""

    error: Exception
    context: RunContextWrapper[TContext]
    run_data: RunErrorData


@dataclass
class RunErrorHandlerResult:
    """The final output instead of an error; `include_in_history`: it becomes a message at the end of the items."""

    final_output: Any
    include_in_history: bool = True


RunErrorHandler: TypeAlias = Callable[[RunErrorHandlerInput[Any]], MaybeAwaitable[Any]]
RunErrorHandlers: TypeAlias = Mapping[str, RunErrorHandler]
