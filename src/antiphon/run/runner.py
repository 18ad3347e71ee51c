"""`Runner`: starts runs, plain, streamed and resumed."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from typing_extensions import Unpack

from antiphon.exceptions import UserError
from antiphon.stream.chunk import is_object

from .agent import Agent
from .awaiting import running_loop
from .config import DEFAULT_MAX_TURNS, RunConfig, RunErrorHandlers
from .context import RunContextWrapper, is_context
from .hooks import RunHooksBase, Told
from .loop import run_events
from .reading import expect, refuse_unknown
from .result import RunResult, RunResultStreaming
from .running import Run
from .session import Keeps, SessionOfRun
from .state import Conversation, RunState
from .tracing import Tracing

if TYPE_CHECKING:
    from antiphon.memory import Session

__all__ = ["DEFAULT_MAX_TURNS", "AgentRunner", "Runner", "get_default_agent_runner", "set_default_agent_runner"]


Input: TypeAlias = str | list[Any] | RunState[Any]

# options that a state keeps -> what they are, beside None: another one would be found out when the state is read again
STORED: dict[str, tuple[type, str]] = {
    "max_turns": (int, "a whole number, or None for no limit"),
    "conversation_id": (str, "text or None"),
    "previous_response_id": (str, "text or None"),
}


class RunOptions(TypedDict, total=False):
    """The options of a run, beside its agent and its input.

    `context`: any object of the caller's. `max_turns`: model calls at most, 10 where it is not given; None is no limit.
    `error_handlers`: what is the output instead of certain errors, by "max_turns", "model_refusal",
    "invalid_final_output", "incomplete". With `conversation_id`, `previous_response_id` or
    `auto_previous_response_id` the server keeps the history.
    """

    context: Any
    max_turns: int | None
    hooks: RunHooksBase[Any, Any] | None
    run_config: RunConfig | Mapping[str, Any] | None
    error_handlers: RunErrorHandlers | None
    previous_response_id: str | None
    auto_previous_response_id: bool
    conversation_id: str | None
    session: Session | None


class AgentRunner:
    """Runs agents. What `Runner` calls; a subclass may be put in its place by `set_default_agent_runner`."""

    async def run(self, starting_agent: Agent[Any], input: Input, **options: Unpack[RunOptions]) -> RunResult:
        """Return what the run comes to."""
        return await drained(_run_of(starting_agent, input, options))

    def run_sync(self, starting_agent: Agent[Any], input: Input, **options: Unpack[RunOptions]) -> RunResult:
        """Return what the run comes to. Raises RuntimeError where an event loop runs: await `run` there.

        The thread's default event loop is kept open for the next time.
        """
        if running_loop() is not None:
            raise RuntimeError("run_sync cannot be called while an event loop is running: await Runner.run instead")
        loop = _thread_loop()
        task = loop.create_task(self.run(starting_agent, input, **options))
        try:
            return loop.run_until_complete(task)
        except BaseException:
            if not task.done():
                task.cancel()
                loop.run_until_complete(asyncio.wait([task]))
            raise

    def run_streamed(
        self, starting_agent: Agent[Any], input: Input, **options: Unpack[RunOptions]
    ) -> RunResultStreaming:
        """Return at once; the run goes on as a task of the event loop that runs."""
        run = _run_of(starting_agent, input, options)
        run.streamed = True
        return RunResultStreaming(run)


def _run_of(agent: Agent[Any], input: Input, options: RunOptions) -> Run:
    return make_run(start(agent, input, options), input, options)


async def drained(run: Run) -> RunResult:
    """Return what a run comes to whose events nobody wants."""
    async for _ in run_events(run):
        pass
    return RunResult(run.state)


def start(agent: Agent[Any], input: Input, options: RunOptions) -> RunState[Any]:
    """Return the state that a run starts from: a copy of the one that was given, or a new one."""
    refuse_unknown("a run", options, RunOptions.__optional_keys__)
    expect(agent, Agent, "the starting agent", "an Agent")
    for name, (kind, words) in STORED.items():
        value = options.get(name)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise TypeError(f"{name} is {value!r}: it is {words}")
    context = options.get("context")
    named = (options.get("conversation_id"), options.get("previous_response_id"))
    kept = Conversation(*named, bool(options.get("auto_previous_response_id")))
    if isinstance(input, RunState):
        return _resumed(input, context, kept)
    if not isinstance(input, str | list):  # pyright: ignore[reportUnnecessaryIsInstance]  # as above
        raise UserError(f"the input is {type(input).__name__}: it is text, a list of input items, or a RunState")
    stray = () if isinstance(input, str) else [type(one).__name__ for one in input if not is_object(one)]
    if stray:
        raise UserError(f"the input is a list with {stray[0]} in it: input items are JSON objects")
    said = input if isinstance(input, str) else list(input)
    turns = options.get("max_turns", DEFAULT_MAX_TURNS)
    return RunState(_wrapped(context), said, agent, turns, agent, conversation=kept)


def _wrapped(context: Any) -> RunContextWrapper[Any]:
    """Return the context of a new run. One of another run, which may go on, lends its context object and its usage.

    Its calls and decisions stay its own.
    """
    if is_context(context):
        return RunContextWrapper(context.context, context.usage, tool_input=context.tool_input)
    return RunContextWrapper(context)


def _resumed(given: RunState[Any], context: Any, kept: Conversation) -> RunState[Any]:
    state = given.copy()
    if context is not None:
        state.context.context = context.context if is_context(context) else context
    if kept.managed:
        state.conversation.conversation_id = kept.conversation_id or state.conversation.conversation_id
        state.conversation.previous_response_id = kept.previous_response_id or state.conversation.previous_response_id
        state.conversation.auto = kept.auto or state.conversation.auto
    return state


def make_run(state: RunState[Any], given: Any, options: RunOptions) -> Run:
    """Return the run. Raises TypeError for hooks that are none, UserError where the history is kept in two places."""
    hooks, session, run_config = options.get("hooks"), options.get("session"), options.get("run_config")
    config = RunConfig.of(run_config)
    if session is not None:
        expect(session, Keeps, "the session", 'a Session, such as SQLiteSession("ada"),')
    if hooks is not None and not isinstance(hooks, RunHooksBase):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers without types
        raise TypeError(f"Run hooks must be instances of RunHooks. Received {type(hooks).__name__}")
    if session is not None and state.conversation.managed:
        raise UserError(
            "a session keeps the history, and so does the server with conversation_id, previous_response_id or "
            "auto_previous_response_id: use one of them"
        )
    if config.reasoning_item_id_policy is not None:
        state.reasoning_item_id_policy = config.reasoning_item_id_policy
    origin: Any = given if isinstance(given, RunState) else None  # pyright: ignore[reportUnknownVariableType]
    return Run(
        state,
        config,
        Told(RunHooksBase() if hooks is None else hooks),
        options.get("error_handlers") or {},
        None if session is None else SessionOfRun.of(session, config, state.context),
        given if origin is None else state.original_input,
        tracing=Tracing.start(disabled=config.tracing_disabled, with_content=config.trace_include_sensitive_data),
        origin=origin,
        continued=state.answered,
        resumed=origin is not None,
        own_models=run_config is None or (isinstance(run_config, Mapping) and "model_provider" not in run_config),
    )


def _thread_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop that this thread has, made where it has none that can be used."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # some versions warn where they make the loop themselves
        try:
            loop = asyncio.get_event_loop()
        except RuntimeError:
            loop = asyncio.new_event_loop()
    if loop.is_closed():
        loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    return loop


_runner: AgentRunner | None = None


def set_default_agent_runner(runner: AgentRunner | None) -> None:
    """Say what `Runner` calls; None is the default again."""
    global _runner
    _runner = runner


def get_default_agent_runner() -> AgentRunner:
    """Return what `Runner` calls."""
    global _runner
    _runner = AgentRunner() if _runner is None else _runner
    return _runner


class Runner:
    """Runs agents: to the end, or until a call waits for a decision."""

    @classmethod
    async def run(cls, starting_agent: Agent[Any], input: Input, **options: Unpack[RunOptions]) -> RunResult:
        """Return what the run comes to. `input`: text, input items, or a `RunState` to go on from.

        That state then stands where the run came to, also where something stopped it: run again, it goes on from there.
        Raises an AgentsException, whose `run_data` says how far the run had come; and what models raise.
        """
        return await get_default_agent_runner().run(starting_agent, input, **options)

    @classmethod
    def run_sync(cls, starting_agent: Agent[Any], input: Input, **options: Unpack[RunOptions]) -> RunResult:
        """Return what the run comes to, without `await`. Raises RuntimeError where an event loop runs."""
        return get_default_agent_runner().run_sync(starting_agent, input, **options)

    @classmethod
    def run_streamed(
        cls,
        starting_agent: Agent[Any],
        input: Input,
        context: Any = None,
        max_turns: int | None = DEFAULT_MAX_TURNS,
        hooks: RunHooksBase[Any, Any] | None = None,
        run_config: RunConfig | Mapping[str, Any] | None = None,
        previous_response_id: str | None = None,
        auto_previous_response_id: bool = False,
        conversation_id: str | None = None,
        session: Session | None = None,
        *,
        error_handlers: RunErrorHandlers | None = None,
    ) -> RunResultStreaming:
        """Return at once; the run goes on as a task. Its events are in `result.stream_events()`."""
        options: RunOptions = {
            "context": context,
            "max_turns": max_turns,
            "hooks": hooks,
            "run_config": run_config,
            "error_handlers": error_handlers,
            "previous_response_id": previous_response_id,
            "auto_previous_response_id": auto_previous_response_id,
            "conversation_id": conversation_id,
            "session": session,
        }
        return get_default_agent_runner().run_streamed(starting_agent, input, **options)
