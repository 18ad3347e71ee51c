"""Hooks: what a program is told of a run while it goes on, by the run (`RunHooks`) or by one agent (`AgentHooks`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from antiphon.models.interface import ModelResponse

from .context import AgentHookContext, RunContextWrapper, TContext

if TYPE_CHECKING:
    from .agent import Agent

TAgent = TypeVar("TAgent", default=Any)


class _Hooks(Generic[TContext, TAgent]):
    """What both kinds are told of: model calls and tools."""

    async def on_llm_start(
        self,
        context: RunContextWrapper[TContext],
        agent: Agent[TContext],
        system_prompt: str | None,
        input_items: list[Any],
    ) -> None:
        """Before a model call."""

    async def on_llm_end(
        self, context: RunContextWrapper[TContext], agent: Agent[TContext], response: ModelResponse
    ) -> None:
        """After a model call."""

    async def on_tool_start(self, context: RunContextWrapper[TContext], agent: TAgent, tool: Any) -> None:
        """Before a tool runs; `context` is its ToolContext."""

    async def on_tool_end(self, context: RunContextWrapper[TContext], agent: TAgent, tool: Any, result: Any) -> None:
        """After a tool ran."""


class RunHooksBase(_Hooks[TContext, TAgent]):
    """Told of everything in a run. Override what is of interest."""

    async def on_agent_start(self, context: AgentHookContext[TContext], agent: TAgent) -> None:
        """When an agent takes over, or begins the run: once a change, not a turn."""

    async def on_agent_end(self, context: AgentHookContext[TContext], agent: TAgent, output: Any) -> None:
        """When an agent has the final output."""

    async def on_handoff(self, context: RunContextWrapper[TContext], from_agent: TAgent, to_agent: TAgent) -> None:
        """When one agent hands over to another."""


class AgentHooksBase(_Hooks[TContext, TAgent]):
    """Told of what concerns one agent. Override what is of interest."""

    async def on_start(self, context: AgentHookContext[TContext], agent: TAgent) -> None:
        """When the agent takes over, or begins the run."""

    async def on_end(self, context: AgentHookContext[TContext], agent: TAgent, output: Any) -> None:
        """When the agent has the final output."""

    async def on_handoff(self, context: RunContextWrapper[TContext], agent: TAgent, source: TAgent) -> None:
        """When this agent, `source`, hands over to `agent`."""


RunHooks = RunHooksBase
AgentHooks = AgentHooksBase
SILENT: AgentHooksBase[Any, Any] = AgentHooksBase()  # of an agent that has none


def _of(agent: Any) -> AgentHooksBase[Any, Any]:
    own: AgentHooksBase[Any, Any] | None = agent.hooks
    return SILENT if own is None else own


@dataclass(frozen=True, slots=True)
class Told:
    """Both hooks of a run, told in order: the run's, then the agent's."""

    run: RunHooksBase[Any, Any]

    async def agent_start(self, context: AgentHookContext[Any], agent: Any) -> None:
        """An agent begins."""
        await self.run.on_agent_start(context, agent)
        await _of(agent).on_start(context, agent)

    async def agent_end(self, context: AgentHookContext[Any], agent: Any, output: Any) -> None:
        """An agent has the final output."""
        await self.run.on_agent_end(context, agent, output)
        await _of(agent).on_end(context, agent, output)

    async def llm_start(self, context: RunContextWrapper[Any], agent: Any, prompt: str | None, items: Any) -> None:
        """A model is about to be called."""
        await self.run.on_llm_start(context, agent, prompt, items)
        await _of(agent).on_llm_start(context, agent, prompt, items)

    async def llm_end(self, context: RunContextWrapper[Any], agent: Any, response: ModelResponse) -> None:
        """A model answered. The agent's hook comes first here. Source: `run_single_turn` of openai-agents 0.24.0."""
        await _of(agent).on_llm_end(context, agent, response)
        await self.run.on_llm_end(context, agent, response)

    async def handoff(self, context: RunContextWrapper[Any], source: Any, target: Any) -> None:
        """An agent hands over. Given by name, since the hooks of others have these names in another order."""
        await self.run.on_handoff(context=context, from_agent=source, to_agent=target)
        await _of(source).on_handoff(context, agent=target, source=source)

    async def tool_start(self, context: RunContextWrapper[Any], agent: Any, tool: Any) -> None:
        """A tool is about to run."""
        await self.run.on_tool_start(context, agent, tool)
        await _of(agent).on_tool_start(context, agent, tool)

    async def tool_end(self, context: RunContextWrapper[Any], agent: Any, tool: Any, result: Any) -> None:
        """A tool ran."""
        await self.run.on_tool_end(context, agent, tool, result)
        await _of(agent).on_tool_end(context, agent, tool, result)
