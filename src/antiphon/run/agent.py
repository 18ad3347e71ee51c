"""`Agent`: a model with instructions, tools, handoffs and guardrails."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, Required, TypeAlias, TypedDict, TypeGuard, get_origin

from antiphon.logger import logger
from antiphon.models.interface import Model
from antiphon.models.settings import ModelSettings
from antiphon.tools.tool import FunctionTool, FunctionToolResult, default_tool_error_function

from .awaiting import MaybeAwaitable, is_on, settled
from .context import RunContextWrapper, TContext
from .hooks import AgentHooksBase
from .output_schema import AgentOutputSchemaBase
from .reading import is_dict, takes


@dataclass
class ToolsToFinalOutputResult:
    """Whether a turn's tool outputs are the final output, and what it is then."""

    is_final_output: bool
    final_output: Any = None


class StopAtTools(TypedDict):
    """The run ends with the output of the first call of one of these tools."""

    stop_at_tool_names: list[str]


class MCPConfig(TypedDict, total=False):
    """How the tools of an agent's MCP servers are offered."""

    convert_schemas_to_strict: bool
    failure_error_function: Any
    include_server_in_tool_names: bool


class Prompt(TypedDict, total=False):
    """A prompt that is stored at the provider: its `id`, and which version and variables of it."""

    id: Required[str]
    version: str | None
    variables: dict[str, Any] | None


@dataclass
class GenerateDynamicPromptData(Generic[TContext]):
    """What a function that makes a prompt is given."""

    context: RunContextWrapper[TContext]
    agent: Agent[TContext]


DynamicPromptFunction: TypeAlias = Callable[[GenerateDynamicPromptData[Any]], MaybeAwaitable[Prompt]]
ToolsToFinalOutputFunction: TypeAlias = Callable[
    [RunContextWrapper[Any], list[FunctionToolResult]], MaybeAwaitable[ToolsToFinalOutputResult]
]
Instructions: TypeAlias = "str | Callable[[RunContextWrapper[Any], Agent[Any]], MaybeAwaitable[str]] | None"
ToolUseBehavior: TypeAlias = Literal["run_llm_again", "stop_on_first_tool"] | StopAtTools | ToolsToFinalOutputFunction


BEHAVIORS = ("run_llm_again", "stop_on_first_tool")
LISTS = ("tools", "mcp_servers", "handoffs", "input_guardrails", "output_guardrails")
# field -> what it may be, in words, and whether a value that is not None is that; None is where the words say so
FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "name": ("a string", lambda value: isinstance(value, str)),
    "handoff_description": ("a string or None", lambda value: isinstance(value, str)),
    **dict.fromkeys(LISTS, ("a list", lambda value: isinstance(value, list))),
    "mcp_config": ("a dict", lambda value: isinstance(value, dict)),
    "instructions": ("a string, callable, or None", lambda value: isinstance(value, str) or callable(value)),
    "prompt": ("a Prompt, DynamicPromptFunction, or None", lambda value: isinstance(value, Mapping) or callable(value)),
    "model": ("a string, Model, or None", lambda value: isinstance(value, str | Model)),
    "model_settings": ("a ModelSettings instance or a dict", lambda value: isinstance(value, ModelSettings | Mapping)),
    "output_type": (
        "a type, AgentOutputSchemaBase, or None",
        lambda value: isinstance(value, type | AgentOutputSchemaBase) or get_origin(value) is not None,
    ),
    "hooks": ("an AgentHooks instance or None", lambda value: isinstance(value, AgentHooksBase)),
    "tool_use_behavior": (
        "'run_llm_again', 'stop_on_first_tool', StopAtTools dict, or callable",
        lambda value: (
            value in BEHAVIORS or callable(value) or "stop_at_tool_names" in (value if is_dict(value) else ())
        ),
    ),
    "reset_tool_choice": ("a boolean", lambda value: isinstance(value, bool)),
}


def check_field(owner: str, name: str, value: Any) -> None:
    """Raise TypeError where a field of an agent, or of what is used instead of an agent's, cannot be that."""
    words, fits = FIELDS[name]
    if not (words.endswith("or None") if value is None else fits(value)):
        raise TypeError(f"{owner} {name} must be {words}, got {type(value).__name__}")


@dataclass(frozen=True, slots=True)
class AgentToolOptions:
    """The options of `Agent.as_tool`.

    `custom_output_extractor`: an async function of the nested result. `on_stream` makes the nested run a streamed one
    and is given its events. `parameters`: a dataclass or pydantic model, instead of one text.
    """

    tool_name: str | None
    tool_description: str | None
    custom_output_extractor: Any = None
    is_enabled: Any = True
    on_stream: Any = None
    run_config: Any = None
    max_turns: int | None = None
    hooks: Any = None
    previous_response_id: str | None = None
    conversation_id: str | None = None
    session: Any = None
    failure_error_function: Any = default_tool_error_function
    needs_approval: Any = False
    parameters: type[Any] | None = None
    input_builder: Any = None
    include_input_schema: bool = False


@dataclass(eq=False)
class AgentBase(Generic[TContext]):
    """What has a name and tools: what hooks, filters and guardrails may ask of any agent."""

    name: str
    handoff_description: str | None = None
    tools: list[Any] = field(default_factory=list[Any])
    mcp_servers: list[Any] = field(default_factory=list[Any])
    mcp_config: MCPConfig = field(default_factory=lambda: MCPConfig())

    async def get_mcp_tools(self, run_context: RunContextWrapper[TContext]) -> list[Any]:
        """Return the tools of the agent's MCP servers, as function tools."""
        if not self.mcp_servers:
            return []
        from antiphon.mcp import agent_tools

        made: list[Any] = await agent_tools(self, run_context)
        return made

    async def get_all_tools(self, run_context: RunContextWrapper[TContext]) -> list[Any]:
        """Return the tools that the model is offered: those of MCP servers and the agent's own that are enabled."""
        offered = await self.get_mcp_tools(run_context)
        for tool in tuple(self.tools):
            if not isinstance(tool, FunctionTool) or await is_on(tool.is_enabled, run_context, self):
                offered.append(tool)
        return offered


@dataclass(eq=False)
class Agent(AgentBase[TContext]):
    """A model with instructions, tools, handoffs and guardrails.

    `model`: a name, a `Model`, or None for the default one. `output_type`: what the final output is parsed as; text
    where there is none. `tool_use_behavior`: whether the model sees what its tools returned, or they end the run.
    `reset_tool_choice`: after the agent has used a tool, its next call leaves the choice to the model. An agent may be
    used in many runs at once. Raises TypeError for a field of another type.
    """

    instructions: Instructions = None
    prompt: Prompt | DynamicPromptFunction | None = None
    handoffs: list[Any] = field(default_factory=list[Any])
    model: str | Model | None = None
    model_settings: ModelSettings = field(default_factory=ModelSettings)
    input_guardrails: list[Any] = field(default_factory=list[Any])
    output_guardrails: list[Any] = field(default_factory=list[Any])
    output_type: Any = None
    hooks: AgentHooksBase[TContext, Any] | None = None
    tool_use_behavior: ToolUseBehavior = "run_llm_again"
    reset_tool_choice: bool = True

    def __post_init__(self) -> None:
        for name in FIELDS:
            check_field("Agent", name, getattr(self, name))
        self.model_settings = ModelSettings.of(self.model_settings)

    def clone(self, **changes: Any) -> Agent[TContext]:
        """Return a copy with changes. It is shallow: lists that are not replaced are shared."""
        return replace(self, **changes)

    @takes(AgentToolOptions)
    def as_tool(self, options: AgentToolOptions) -> FunctionTool:
        """Return a function tool that runs this agent on what the model writes, and answers with its final output.

        The options are those of `AgentToolOptions`. Raises TypeError for any other.
        """
        from .agent_tool import agent_tool

        return agent_tool(self, options)

    async def get_system_prompt(self, run_context: RunContextWrapper[TContext]) -> str | None:
        """Return the instructions. Raises TypeError for a callable that takes other than context and agent."""
        match self.instructions:
            case None | str():
                return self.instructions
            case made if callable(made):
                count = len(inspect.signature(made).parameters)
                if count != 2:
                    raise TypeError(
                        f"'instructions' callable must accept exactly 2 arguments (context, agent), but got {count}"
                    )
                return await settled(made(run_context, self))
            case other:  # pyright: ignore[reportUnnecessaryComparison]  # set after the agent was made
                logger.error("instructions of agent %s are %s: a string or a function", self.name, type(other).__name__)
                return None

    async def get_prompt(self, run_context: RunContextWrapper[TContext]) -> dict[str, Any] | None:
        """Return the stored prompt that the model is called with: its id, version and variables."""
        made: Any = self.prompt
        if callable(made):
            made = await settled(made(GenerateDynamicPromptData(run_context, self)))
        if made is None:
            return None
        held = made if is_dict(made) else {}
        if "id" not in held:
            raise TypeError(f"the prompt of agent {self.name} is {type(made).__name__}: it is a mapping with an id")
        return {name: held.get(name) for name in ("id", "version", "variables")}


def is_agent(value: object) -> TypeGuard[Agent[Any]]:
    """Return whether `value` is an agent."""
    return isinstance(value, Agent)
