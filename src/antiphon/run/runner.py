"""`Runner`: starts runs, plain, streamed and resumed."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from typing_extensions import Unpack

from antiphon.exceptions import UserError

from .agent import Agent
from .config import DEFAULT_MAX_TURNS, RunConfig, RunErrorHandlers
from .context import RunContextWrapper, is_context
from .hooks import RunHooksBase, Told
from .loop import run_events
from .result import RunResult, RunResultStreaming
from .running import Run
from .session import SessionOfRun
from .state import Conversation, RunState
from .tracing import Tracing

if TYPE_CHECKING:
    from antiphon.memory import Session

__all__ = ["DEFAULT_MAX_TURNS", "AgentRunner", "Runner", "get_default_agent_runner", "set_default_agent_runner"]


class RunOptions(TypedDict, total=False):
    """The options of a run, beside its agent and its input; `Runner.run` says what they mean."""

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

    async def run(
        self, starting_agent: Agent[Any], input: str | list[Any] | RunState[Any], **options: Unpack[RunOptions]
    ) -> RunResult:
        """Return what the run comes to."""
        return await drained(_run_of(starting_agent, input, options))

    def run_sync(
        self, starting_agent: Agent[Any], input: str | list[Any] | RunState[Any], **options: Unpack[RunOptions]
    ) -> RunResult:
        """Return what the run comes to. Raises RuntimeError where an event loop runs: await `run` there.

        The thread's default event loop is kept open for the next time.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
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
        self, starting_agent: Agent[Any], input: str | list[Any] | RunState[Any], **options: Unpack[RunOptions]
    ) -> RunResultStreaming:
        """Return at once; the run goes on as a task of the event loop that runs."""
        run = _run_of(starting_agent, input, options)
        run.streamed = True
        return RunResultStreaming(run)


def _run_of(agent: Agent[Any], input: str | list[Any] | RunState[Any], options: RunOptions) -> Run:
    kept = Conversation(
        options.get("conversation_id"),
        options.get("previous_response_id"),
        options.get("auto_previous_response_id", False),
    )
    state = start(agent, input, options.get("context"), options.get("max_turns", DEFAULT_MAX_TURNS), kept)
    held = (options.get("hooks"), options.get("run_config"), options.get("error_handlers"), options.get("session"))
    return make_run(state, input, *held)


async def drained(run: Run) -> RunResult:
    """Return what a run comes to whose events nobody wants."""
    async for _ in run_events(run):
        pass
    return RunResult(run.state)


def start(
    agent: Agent[Any],
    input: str | list[Any] | RunState[Any],
    context: Any,
    max_turns: int | None,
    kept: Conversation,
) -> RunState[Any]:
    """Return the state that a run starts from: a copy of the one that was given, or a new one."""
    if not isinstance(agent, Agent):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers without types
        raise UserError(f"a run starts with {type(agent).__name__}: with an Agent it must")
    if isinstance(input, RunState):
        return _resumed(input, context, kept)
    if not isinstance(input, str | list):  # pyright: ignore[reportUnnecessaryIsInstance]  # as above
        raise UserError(f"the input is {type(input).__name__}: it is text, a list of input items, or a RunState")
    said = input if isinstance(input, str) else list(input)
    return RunState(_wrapped(context), said, agent, max_turns, agent, conversation=kept)


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


def make_run(
    state: RunState[Any],
    given: Any,
    hooks: Any,
    run_config: RunConfig | Mapping[str, Any] | None,
    error_handlers: RunErrorHandlers | None,
    session: Any,
) -> Run:
    """Return the run. Raises TypeError for hooks that are none, UserError where the history is kept in two places."""
    config = RunConfig.of(run_config)
    if hooks is not None and not isinstance(hooks, RunHooksBase):
        raise TypeError(f"Run hooks must be instances of RunHooks. Received {type(hooks).__name__}")
    if session is not None and state.conversation.managed:
        raise UserError(
            "a session keeps the history, and so does the server with conversation_id, previous_response_id or "
            "auto_previous_response_id: use one of them"
        )
    if config.reasoning_item_id_policy is not None:
        state.reasoning_item_id_policy = config.reasoning_item_id_policy
    tracing = Tracing.start(disabled=config.tracing_disabled, with_content=config.trace_include_sensitive_data)
    told = Told(hooks or RunHooksBase())  # pyright: ignore[reportUnknownArgumentType]
    kept = None if session is None else SessionOfRun(session, config)
    resumed = isinstance(given, RunState)
    own = run_config is None or (isinstance(run_config, Mapping) and "model_provider" not in run_config)
    said: Any = state.original_input if resumed else given
    return Run(state, config, told, error_handlers or {}, kept, said, tracing=tracing, resumed=resumed, own_models=own)


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
    _runner = _runner or AgentRunner()
    return _runner


class Runner:
    """Runs agents: to the end, or until a call waits for a decision."""

    @classmethod
    async def run(
        cls,
        starting_agent: Agent[Any],
        input: str | list[Any] | RunState[Any],
        *,
        context: Any = None,
        max_turns: int | None = DEFAULT_MAX_TURNS,
        hooks: RunHooksBase[Any, Any] | None = None,
        run_config: RunConfig | Mapping[str, Any] | None = None,
        error_handlers: RunErrorHandlers | None = None,
        previous_response_id: str | None = None,
        auto_previous_response_id: bool = False,
        conversation_id: str | None = None,
        session: Session | None = None,
    ) -> RunResult:
        """Return what the run comes to.

        `input`: text, input items, or a `RunState` to go on from. `context`: any object of the caller's. `max_turns`:
        model calls at most; None is no limit. `error_handlers`: what is the output instead of certain errors, by
        "max_turns", "model_refusal", "invalid_final_output", "incomplete". With `conversation_id`,
        `previous_response_id` or `auto_previous_response_id` the server keeps the history.

        Raises an AgentsException, whose `run_data` says how far the run had come; and what models raise.
        """
        return await get_default_agent_runner().run(
            starting_agent,
            input,
            context=context,
            max_turns=max_turns,
            hooks=hooks,
            run_config=run_config,
            error_handlers=error_handlers,
            previous_response_id=previous_response_id,
            auto_previous_response_id=auto_previous_response_id,
            conversation_id=conversation_id,
            session=session,
        )

    @classmethod
    def run_sync(
        cls,
        starting_agent: Agent[Any],
        input: str | list[Any] | RunState[Any],
        *,
        context: Any = None,
        max_turns: int | None = DEFAULT_MAX_TURNS,
        hooks: RunHooksBase[Any, Any] | None = None,
        run_config: RunConfig | Mapping[str, Any] | None = None,
        error_handlers: RunErrorHandlers | None = None,
        previous_response_id: str | None = None,
        auto_previous_response_id: bool = False,
        conversation_id: str | None = None,
        session: Session | None = None,
    ) -> RunResult:
        """Return what the run comes to, without `await`. Raises RuntimeError where an event loop runs."""
        return get_default_agent_runner().run_sync(
            starting_agent,
            input,
            context=context,
            max_turns=max_turns,
            hooks=hooks,
            run_config=run_config,
            error_handlers=error_handlers,
            previous_response_id=previous_response_id,
            auto_previous_response_id=auto_previous_response_id,
            conversation_id=conversation_id,
            session=session,
        )

    @classmethod
    def run_streamed(
        cls,
        starting_agent: Agent[Any],
        input: str | list[Any] | RunState[Any],
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
        return get_default_agent_runner().run_streamed(
            starting_agent,
            input,
            context=context,
            max_turns=max_turns,
            hooks=hooks,
            run_config=run_config,
            previous_response_id=previous_response_id,
            auto_previous_response_id=auto_previous_response_id,
            conversation_id=conversation_id,
            session=session,
            error_handlers=error_handlers,
        )
