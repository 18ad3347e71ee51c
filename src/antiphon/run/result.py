"""What a run came to: `RunResult` of a plain run, `RunResultStreaming` of one whose events are read."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from antiphon.exceptions import AgentsException, UserError
from antiphon.models.interface import ModelResponse

from .awaiting import running_loop
from .context import RunContextWrapper
from .events import StreamEvent
from .items import RunItem, ToolApprovalItem
from .loop import run_events
from .running import Run
from .state import RunState

if TYPE_CHECKING:
    from .agent import Agent

T = TypeVar("T")


@dataclass(frozen=True)
class AgentToolInvocation:
    """The call of an agent tool that a nested run answers."""

    tool_name: str
    tool_call_id: str
    tool_arguments: str


class RunResultBase:
    """What both results have. `new_items`: all that the run brought, by all its agents, with the calls that wait."""

    def __init__(self, state: RunState[Any]) -> None:
        self._kept = state
        self._last: weakref.ref[Agent[Any]] | None = None
        self.input: str | list[Any] = state.original_input
        self.context_wrapper: RunContextWrapper[Any] = state.context
        self.max_turns = state.max_turns

    @property
    def new_items(self) -> list[RunItem]:
        """All items that the run brought, those of turns that are not done yet included."""
        return self._kept.items

    @property
    def raw_responses(self) -> list[ModelResponse]:
        """The models' answers, in order."""
        return list(self._kept.model_responses)

    @property
    def final_output(self) -> Any:
        """The final output: of the last agent's output type; None where the run has none."""
        return self._kept.final_output

    @property
    def interruptions(self) -> list[ToolApprovalItem]:
        """The calls that wait for a decision."""
        return list(self._kept.pending)

    @property
    def incomplete_reason(self) -> str | None:
        """Why the model's last answer was cut off, in the API's word; None where it was not."""
        return self._kept.incomplete_reason

    @property
    def input_guardrail_results(self) -> list[Any]:
        """What the guardrails found in the input."""
        return list(self._kept.input_guardrail_results)

    @property
    def output_guardrail_results(self) -> list[Any]:
        """What the guardrails found in the final output."""
        return list(self._kept.output_guardrail_results)

    @property
    def tool_input_guardrail_results(self) -> list[Any]:
        """What the tools' guardrails found in the arguments of calls."""
        return list(self._kept.tool_input_guardrail_results)

    @property
    def tool_output_guardrail_results(self) -> list[Any]:
        """What the tools' guardrails found in what tools returned."""
        return list(self._kept.tool_output_guardrail_results)

    @property
    def last_agent(self) -> Agent[Any]:
        """The agent that ran last. Raises AgentsException where it was released and is gone."""
        if self._last is None:
            return self._kept.current_agent
        agent = self._last()
        if agent is None:
            raise AgentsException("the last agent was released, and nothing else holds it: keep it, or release later")
        return agent

    @property
    def last_response_id(self) -> str | None:
        """The id of the last answer, for `previous_response_id` of another run."""
        responses = self._kept.model_responses
        return responses[-1].response_id if responses else None

    @property
    def agent_tool_invocation(self) -> AgentToolInvocation | None:
        """The call that this run answers, where it is the run inside an agent tool."""
        found: AgentToolInvocation | None = self._kept.agent_tool_invocation
        return found

    def final_output_as(self, cls: type[T], raise_if_incorrect_type: bool = False) -> T:
        """Return the final output, for the type checker as `cls`. Raises TypeError where it is not, if asked to."""
        if raise_if_incorrect_type and not isinstance(self.final_output, cls):
            raise TypeError(f"Final output is not of type {cls.__name__}: it is {type(self.final_output).__name__}")
        return cast("T", self.final_output)

    def to_input_list(self, *, mode: Literal["preserve_all", "normalized"] = "preserve_all") -> list[Any]:
        """Return the run as input of another: its input and all new items, or, "normalized", as the last agent read it.

        The two differ only where a handoff rewrote the history. Raises ValueError for another mode.
        """
        return self._settled_state().preserved(mode)

    def to_state(self) -> RunState[Any]:
        """Return where the run stands, to go on from there; after a cancel, before the turn that it broke off.

        What is decided on it later does not show in this result. Raises UserError where the agents were released.
        """
        state = self._settled_state()
        if self._last is not None:
            raise UserError("the agents of the result were released, and a state needs them: take it before")
        return state.copy()

    def release_agents(self, *, release_new_items: bool = True) -> None:
        """Hold no agent any more but weakly; with `release_new_items` False those of the items stay. No state after."""
        state = self._kept
        self._last = weakref.ref(state.current_agent)
        if release_new_items:
            for item in state.items:
                item.release_agent()
        state.starting_agent = state.current_agent = cast("Any", None)
        state.used = []

    def _settled_state(self) -> RunState[Any]:
        """Return the state without a turn that was broken off, or that has no answer yet."""
        return self._kept

    def __str__(self) -> str:
        state = self._kept
        agent = state.current_agent if self._last is None else self._last()
        lines = [
            f"{type(self).__name__}:",
            f"- Last agent: {'released' if agent is None else agent.name}",
            f"- Final output ({type(state.final_output).__name__}): {state.final_output}",
            f"- {len(state.items)} new item(s)",
            f"- {len(state.model_responses)} raw response(s)",
            f"- {len(state.pending)} interruption(s)",
        ]
        return "\n".join(lines)


class RunResult(RunResultBase):
    """What a plain run came to."""


class RunResultStreaming(RunResultBase):
    """A run that goes on in the background, and its events.

    It goes on also where nobody reads. Closing the iterator of the events is `cancel()`.
    """

    def __init__(self, run: Run) -> None:
        super().__init__(run.state)
        self._run = run
        self._events: deque[StreamEvent] = deque()
        self._news, self._back = asyncio.Event(), asyncio.Event()
        self._cancelled = False
        self._error: BaseException | None = None
        self._over = self._reading = self._dropped = False
        self.trace = None
        run.report_to(self._put)
        run.unread = lambda: self._reading and bool(self._events)
        run.read_up = self._read_up
        self._task: asyncio.Task[None] = asyncio.create_task(self._drive())
        held = weakref.ref(self)
        self._task.add_done_callback(lambda task: _seen(task, held()))

    @property
    def is_complete(self) -> bool:
        """Whether the run is over, all is saved, and whoever reads its events has come to their end."""
        return self._over and not self._reading

    @property
    def current_agent(self) -> Agent[Any]:
        """The agent that runs now, or ran last."""
        return self.last_agent

    @property
    def current_turn(self) -> int:
        """The turn at hand, from 1; 0 before the first model call."""
        return self._kept.current_turn

    @property
    def new_items(self) -> list[RunItem]:
        """All items that the run brought; after a cancel, of the turns that were done."""
        state = self._kept
        return list(state.new_items) if self._broken_off else state.items

    @property
    def run_loop_task(self) -> asyncio.Task[None]:
        """The task of the run. Whoever asks for it may await it, so the run waits for no reader until one reads on."""
        self._reading = False
        self._back.set()
        return self._task

    @property
    def run_loop_exception(self) -> BaseException | None:
        """What stopped the run; None where nothing did, or not yet."""
        return self._error

    def stream_events(self) -> EventReader:
        """Return the events that were not read yet, as they come. What stopped the run is raised after the last.

        Once somebody reads, the run waits at the end of each turn until all of it was read and more is asked for.
        """
        return EventReader(self)

    def cancel(self, mode: Literal["immediate", "after_turn"] = "immediate") -> None:
        """Stop the run: at once, with no more events, and nothing of the turn at hand; or before the next model call.

        Raises nothing, and may be called again.
        """
        if mode == "after_turn":
            self._run.stopping = True
            self._back.set()
            return
        self._events.clear()
        self._reading = False
        self._back.set()
        if self._over:
            return
        self._cancelled = self._over = True
        self._task.cancel()
        self._news.set()

    @property
    def _broken_off(self) -> bool:
        return self._cancelled and not self._run.continued

    def _settled_state(self) -> RunState[Any]:
        state = self._kept
        unfinished = state.asking or (self._broken_off and state.answered)
        if self._dropped or not unfinished:
            return state
        state = state.copy()
        state.drop_turn()
        return state

    async def _drive(self) -> None:
        try:
            async with aclosing(run_events(self._run)) as events:
                async for event in events:
                    self._put(event)
        except asyncio.CancelledError:
            self._kept = self._run.state = self._settled_state()  # what else holds the state keeps what was done
            self._dropped = True
            if not self._cancelled:
                self._error = _stopped()
                raise
        except BaseException as error:
            self._error = error
            raise
        finally:
            self.input = self._kept.original_input
            self._over = True
            self._run.be_quiet()
            self._news.set()

    def _never_begun(self) -> None:
        """Note that the task was cancelled before it began to run, so that no reader waits for it."""
        if not self._over:
            self._error, self._over = _stopped(), True
            self._news.set()

    def _put(self, event: StreamEvent) -> None:
        if not self._over:
            self._events.append(event)
            self._news.set()

    async def _read_up(self) -> None:
        """Wait until who reads has come back for more, or has gone: with the last event it may stop the run."""
        while self._reading and not self._run.stopping and (self._events or not self._back.is_set()):
            self._back.clear()
            await self._back.wait()

    async def _read(self) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events that were not read yet, as they come, until the task is gone. Raises what stopped the run."""
        try:
            while self._events or not self._over:
                self._reading = True
                if self._events:
                    yield self._events.popleft()
                else:
                    self._news.clear()
                    self._back.set()
                    await self._news.wait()
                    self._back.clear()
            if not self._task.done():
                await asyncio.wait([self._task])
            if self._error is not None and not self._cancelled:
                raise self._error
        finally:
            self.cancel()


def _stopped() -> AgentsException:
    return AgentsException("the task of the run was cancelled; result.cancel() does it without error")


def _seen(task: asyncio.Task[None], result: RunResultStreaming | None) -> None:
    """Mark a task's error as seen: it is raised to who reads, or awaits the task."""
    if not task.cancelled():
        task.exception()
    elif result is not None:
        result._never_begun()  # pyright: ignore[reportPrivateUsage]  # a part of the same thing


class EventReader(AsyncIterator[StreamEvent]):
    """The events of a run, in order. Closing it, or losing it between the first event and the end, cancels the run."""

    def __init__(self, result: RunResultStreaming) -> None:
        self._result, self._begun = result, False
        self._events = result._read()  # pyright: ignore[reportPrivateUsage]  # a part of the same thing
        self._task = result._task  # pyright: ignore[reportPrivateUsage]  # as above

    def __aiter__(self) -> EventReader:
        return self

    async def __anext__(self) -> StreamEvent:
        self._begun, result = True, self._result
        if not result._events:  # pyright: ignore[reportPrivateUsage]  # a part of the same thing
            return await anext(self._events)
        result._reading = True  # pyright: ignore[reportPrivateUsage]  # as above
        return result._events.popleft()  # pyright: ignore[reportPrivateUsage]  # as above

    async def aclose(self) -> None:
        """Cancel the run, unless it has ended, and wait until its work has stopped."""
        self._result.cancel()
        task = self._task
        if not task.done() and task is not asyncio.current_task():
            await asyncio.wait([task])

    async def __aenter__(self) -> EventReader:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        result, loop = self._result, self._task.get_loop()
        if not self._begun:
            return
        if self._task.done() or loop is running_loop():
            result.cancel()
        elif not loop.is_closed():
            loop.call_soon_threadsafe(result.cancel)  # the garbage of one thread may be collected by another
