"""`Run`: all that a run has beside where it stands."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from antiphon.exceptions import UserError
from antiphon.models.interface import Model, ModelTracing
from antiphon.models.settings import ModelSettings
from antiphon.tools.computer import Computers

from .agent import Agent, is_agent
from .approvals import Ledger
from .awaiting import is_on, returned
from .classify import Offered, offer
from .config import CallModelData, ModelInputData, RunConfig, RunErrorHandlers
from .context import AgentHookContext, ToolContext
from .events import RunItemStreamEvent, StreamEvent, ToolProgressStreamEvent, item_event
from .guards import Guards
from .handoffs import Handoff, handoff
from .hooks import Told
from .items import RunItem
from .output_schema import AgentOutputSchema, AgentOutputSchemaBase
from .session import SessionOfRun
from .state import RunState
from .tracing import OFF, Tracing

BREATHS = 10  # how often readers and guardrails are let go on before a run does


@dataclass(slots=True)
class Run:
    """A run: `state` is where it stands, the rest does not change but for what it has shown and whether it is to stop.

    `given`: the input as the caller gave it. `read_up`: waits until a reader, if there is one, asks for more events.
    `streamed`: whether models are asked for streams. `unread`: whether a reader has not seen all events. `shown`: how many
    items of the turn were handed out as events. `stopping`: no further turn is begun.
    `origin`: the state that it goes on from, if one was given. `resumed`: it does, and has saved nothing yet.
    `continued`: the turn at hand was begun by an earlier run.
    `own_models`: the provider of models was made for this run alone.
    """

    state: RunState[Any]
    config: RunConfig
    hooks: Told
    handlers: RunErrorHandlers
    session: SessionOfRun | None = None
    given: Any = None
    streamed: bool = False
    unread: Callable[[], bool] | None = None
    read_up: Callable[[], Awaitable[None]] | None = None
    shown: int = 0
    stopping: bool = False
    continued: bool = False
    origin: RunState[Any] | None = None
    resumed: bool = False
    own_models: bool = False
    tracing: Tracing = OFF
    guards: Guards = field(default_factory=Guards)
    computers: Computers = field(default_factory=Computers)
    one_by_one: asyncio.Lock = field(default_factory=asyncio.Lock)
    gate: AbstractAsyncContextManager[Any] = field(init=False)
    _schemas: dict[int, AgentOutputSchemaBase | None] = field(default_factory=dict[int, Any])
    _handoffs: dict[int, Handoff[Any, Any]] = field(default_factory=dict[int, Any])

    def __post_init__(self) -> None:
        most = self.config.tool_execution and self.config.tool_execution.max_function_tool_concurrency
        self.gate = asyncio.Semaphore(most) if most else nullcontext()

    @property
    def ledger(self) -> Ledger:
        """What was decided about the calls of this run, and which were made."""
        return self.state.context._ledger  # pyright: ignore[reportPrivateUsage]  # a part of the same thing

    async def breathe(self) -> None:
        """Let whoever reads the events come up with them, and guardrails say what they know, before more is done.

        Not for ever: both may wait for what is done.
        """
        if self.unread is None and not self.guards.running:
            return
        for _ in range(BREATHS):
            await asyncio.sleep(0)
            if not (self.guards.running or (self.unread is not None and self.unread())):
                return

    def fresh(self) -> list[RunItemStreamEvent]:
        """Return the events of the items of the turn that were not shown yet."""
        new = self.state.turn[self.shown :]
        self.shown += len(new)
        return [event for item in new if (event := item_event(item)) is not None]

    async def offered(self, agent: Agent[Any]) -> Offered:
        """Return what an agent offers its model: the tools and handoffs that are enabled now."""
        context = self.state.context
        made = [self._handoff(one) for one in agent.handoffs]
        handoffs = [one for one in made if await is_on(one.is_enabled, context, agent)]
        return offer(agent, await agent.get_all_tools(context), handoffs, self.config)

    def schema(self, agent: Agent[Any]) -> AgentOutputSchemaBase | None:
        """Return what an agent's output is parsed as; None for text."""
        if id(agent) not in self._schemas:
            self._schemas[id(agent)] = output_schema(agent)
        return self._schemas[id(agent)]

    def model(self, agent: Agent[Any]) -> Model:
        """Return the model of an agent: the run's, else its own, else the default one."""
        named = self.config.model if self.config.model is not None else agent.model
        return named if isinstance(named, Model) else self.config.model_provider.get_model(named)

    def settings(self, agent: Agent[Any]) -> ModelSettings:
        """Return the settings of an agent's next call. After it has used a tool, it is free to use none."""
        settings = agent.model_settings.resolve(self.config.model_settings)
        if not agent.reset_tool_choice or not self.state.used_by(agent) or settings.tool_choice is None:
            return settings
        return replace(settings, tool_choice=None)

    @property
    def model_tracing(self) -> ModelTracing:
        """What a model is told about tracing."""
        if self.config.tracing_disabled:
            return ModelTracing.DISABLED
        return ModelTracing.ENABLED if self.config.trace_include_sensitive_data else ModelTracing.ENABLED_WITHOUT_DATA

    async def model_data(self, agent: Agent[Any], instructions: str | None) -> ModelInputData:
        """Return what a model is given, after the run's filter. Raises UserError where that returns something else."""
        data = ModelInputData(self.state.model_input(), instructions)
        if self.config.call_model_input_filter is None:
            return data
        call = CallModelData(data, agent, self.state.context.context)
        return await returned(self.config.call_model_input_filter(call), ModelInputData, "call_model_input_filter")

    def hook_context(self) -> AgentHookContext[Any]:
        """Return what the hooks at the start and the end of an agent are given."""
        held = self.state.context
        return AgentHookContext(held.context, held.usage, held.turn_input, held.tool_input, self.ledger)

    async def save(self, count: int | None = None) -> None:
        """Add the items of the turn, or the first `count`, to the session, but for those that are there.

        They count as saved once they are: whoever keeps the state meanwhile may be stopped before.
        """
        state = self.state
        until = len(state.turn) if count is None else count
        if self.session is not None and until > state.turn_saved:
            await self.keep(state.turn[state.turn_saved : until])
        state.turn_saved = max(until, state.turn_saved)

    async def keep(self, items: Sequence[RunItem]) -> None:
        """Add items to the session; those of the first turn of a resumed run may be there already."""
        if self.session is None:
            return
        new = self.state.inputs_of(items)
        if self.resumed:
            new = await self.session.missing(new)
            self.resumed = False
        await self.session.add(new)

    def report_to(self, sink: Callable[[StreamEvent], None]) -> None:
        """Let `sink` take what tools report, in the thread of the loop that runs now."""
        loop, home = asyncio.get_running_loop(), threading.get_ident()

        def progress(context: Any, data: Any) -> None:
            event = ToolProgressStreamEvent(data, "", "")
            if isinstance(context, ToolContext):
                event = ToolProgressStreamEvent(data, context.tool_name, context.tool_call_id, context.agent)
            if threading.get_ident() == home:
                sink(event)
            else:
                loop.call_soon_threadsafe(sink, event)

        self.state.context._progress = progress  # pyright: ignore[reportPrivateUsage]  # a part of the same thing

    def be_quiet(self) -> None:
        """Let go of who read the events: nothing more is reported."""
        self.unread = self.read_up = None
        self.state.context._progress = None  # pyright: ignore[reportPrivateUsage]  # as above

    def _handoff(self, given: Any) -> Handoff[Any, Any]:
        """Return a handoff; one that is made of an agent is made once a run."""
        if isinstance(given, Handoff):
            return given  # pyright: ignore[reportUnknownVariableType]
        if not is_agent(given):
            raise UserError(f"a handoff is {type(given).__name__}: it is an Agent or a Handoff")
        if id(given) not in self._handoffs:
            self._handoffs[id(given)] = handoff(given)
        return self._handoffs[id(given)]


def output_schema(agent: Agent[Any]) -> AgentOutputSchemaBase | None:
    """Return what an agent's output is parsed as; None for text."""
    kind = agent.output_type
    if kind is None or kind is str:
        return None
    return kind if isinstance(kind, AgentOutputSchemaBase) else AgentOutputSchema(kind)
