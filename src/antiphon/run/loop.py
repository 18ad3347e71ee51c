"""The loop: one async generator of events, for every kind of run.

model call -> items -> tools -> outcome, a turn after the other, until the outcome is an end
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from antiphon import exceptions
from antiphon.logger import logger
from antiphon.models.interface import ModelProvider, ModelResponse
from antiphon.stream.chunk import fields
from antiphon.tools.hosted import ProgrammaticToolCallingTool

from .agent import Agent
from .approvals import Ledger
from .awaiting import together
from .classify import Answer, Offered, Programs, classify
from .endings import (
    FinalOutput,
    HandoffTo,
    Interruption,
    Outcome,
    RunAgain,
    decide,
    finish,
    handled,
    instead_of,
    interrupt,
)
from .events import AgentUpdatedStreamEvent, StreamEvent, item_event
from .execute import Executed, execute
from .guardrails import InputGuardrail
from .guards import all_of, checked
from .handing_over import hand_over, pass_on
from .items import ItemHelpers, RunItem
from .model_call import ModelCall, final_by_tools
from .running import Run
from .tracing import Tracing


async def run_events(run: Run) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of a run, from where its state stands to its end; then all is saved, and the state says how.

    It is to be driven by one task. Raises what stops the run, with how far it had come as `run_data`.
    """
    state, config = run.state, run.config
    named = (config.workflow_name, config.group_id, config.trace_id, config.trace_metadata)
    yield AgentUpdatedStreamEvent(state.current_agent)
    try:
        with run.tracing.workflow(*named) as span:
            async with run.guards:
                await _begin(run)
                async with aclosing(_turns(run, span.inside)) as events:
                    async for event in events:
                        yield event
    except exceptions.AgentsException as error:
        error.run_data = error.run_data or state.details()
        raise
    finally:
        if run.origin is not None:  # whoever has that state tries again with it: what was done is not done twice
            run.origin.become(state)
        await run.computers.dispose(state.context)
        if run.own_models:
            await _close(run.config.model_provider)


async def _close(provider: ModelProvider) -> None:
    """Close what was made for the run; where that fails, the run has come to what it has come to."""
    try:
        await provider.aclose()
    except Exception as error:  # noqa: BLE001  # as the docstring says
        logger.warning("the provider of models did not close: %s", type(error).__name__)


async def _begin(run: Run) -> None:
    """Read the session, and ask the guardrails of what the user says: those that block first, the others beside.

    All of them block where input was added to a run: it waits again after a trip, and is asked about again.
    """
    state = run.state
    said: Any = run.given if state.current_turn == 0 else [item.to_input_item() for item in state.queued]
    if run.session is not None and state.current_turn == 0 and not state.input_saved:
        await run.session.begin(state, resumed=run.resumed)
    if state.current_turn and not said:
        return
    if state.current_turn == 0:
        state.input_guardrail_results.clear()  # a first turn that was broken off is asked about anew
    agent = state.starting_agent
    guardrails = all_of(InputGuardrail, "input_guardrail", agent.input_guardrails, run.config.input_guardrails)
    blocking = [one for one in guardrails if state.current_turn or not one.run_in_parallel]
    if blocking:
        await together([checked(one, agent, said, state) for one in blocking])
    run.guards.start((one for one in guardrails if one not in blocking), agent, said, state)


async def _turns(run: Run, tracing: Tracing) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of all turns, until the run ends or waits; the turns of one agent are inside its span."""
    state = run.state
    while not state.ended and not run.stopping:
        agent = state.current_agent
        with tracing.agent(agent.name, agent.handoff_description) as span:
            while state.current_agent is agent and not state.ended and not run.stopping:
                async with aclosing(_turn(run, agent, span.inside)) as events:
                    async for event in events:
                        yield event
                await run.breathe()
                if state.pending:
                    return
                if run.read_up is not None and not state.ended:
                    await run.read_up()  # whoever reads may stop the run here, before the model is called again


async def _turn(run: Run, agent: Agent[Any], tracing: Tracing) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of one turn, or of what is left of one."""
    state = run.state
    run.tracing = tracing
    answer = Answer()
    outcome: Outcome | None = None
    if state.answered:
        offered = await run.offered(agent)
        run.shown, state.pending = len(state.turn), []
        answer = _again(run, state.model_responses[-1], offered)
    elif state.max_turns is not None and state.current_turn >= state.max_turns:
        state.start_turn()
        run.shown = 0
        error = exceptions.MaxTurnsExceeded(f"Max turns ({state.max_turns}) exceeded")
        outcome = await instead_of(run, agent, error)
    else:
        _begin_turn(run, agent)
        call = ModelCall(run, agent, tracing)
        async with aclosing(call.events()) as raw:
            async for one in raw:
                run.guards.raise_known()
                yield one
        answer = _read(run, agent, call.offered)
        outcome = await _incomplete(run, agent) if answer.cut else None
    for shown in run.fresh():
        yield shown
    try:
        outcome = outcome or await _outcome(run, agent, answer)
    except exceptions.AgentsException:
        for shown in run.fresh():  # what other tools of the turn have done before one failed
            yield shown
        raise
    for shown in run.fresh():
        yield shown
    for event in await _after(run, agent, outcome):
        yield event


def _begin_turn(run: Run, agent: Agent[Any]) -> None:
    """Begin a turn of an agent, with the input that the user has added meanwhile."""
    state = run.state
    state.current_turn += 1
    state.conversation.mark()
    state.start_turn()
    state.asking = True
    run.shown, run.continued = 0, False
    state.turn.extend(replace(item, agent=agent) for item in state.queued)
    state.queued.clear()


# --- the model's answer ----------------------------------------------------------------------------------------------


def _read(run: Run, agent: Agent[Any], offered: Offered) -> Answer:
    """Return what the model answered; its items are in the turn."""
    state = run.state
    response = state.model_responses[-1]
    if response.status == "incomplete" or any(map(_is_cut_call, response.output)):
        answer = _cut(response, offered, run)
    else:
        answer = classify(response.output, offered, run.config, run.ledger, _programs(run, offered))
        state.answered = True
    state.turn.extend(answer.items)
    state.used_by(agent).extend(answer.used)
    state.conversation.answered(response.response_id, len(state.model_items) + len(state.turn))
    return answer


def _is_cut_call(item: Any) -> bool:
    held = fields(item)
    return held.get("type") in ("function_call", "custom_tool_call") and held.get("status") == "incomplete"


def _cut(response: ModelResponse, offered: Offered, run: Run) -> Answer:
    """Return what is usable of an answer that was cut off: no call, since it may be the one that is not whole."""
    run.state.incomplete_reason = response.incomplete_reason
    whole = [item for item in response.output if getattr(item, "type", None) in ("message", "reasoning")]
    return Answer(classify(whole, offered, run.config, run.ledger, Programs()).items, cut=True)


def _again(run: Run, response: ModelResponse, offered: Offered) -> Answer:
    """Return the answer that an earlier run had begun to work on."""
    answer = classify(response.output, offered, run.config, Ledger(), _begun(run, ()))
    answer.handoffs = [one for one in answer.handoffs if not run.ledger.register(one.call).completed]
    answer.check_recipients(run.state.turn, run.ledger)
    return answer


def _programs(run: Run, offered: Offered) -> Programs:
    """Return the programs so far; without the tool that runs them there are none."""
    if offered.first(ProgrammaticToolCallingTool) is None:
        return Programs()
    return _begun(run, run.state.turn)


def _begun(run: Run, turn: Iterable[RunItem]) -> Programs:
    kept = run.state.conversation
    elsewhere = bool(kept.conversation_id or kept.previous_response_id)
    return Programs.of([*_before(run), *(item.raw_item for item in turn)], elsewhere=elsewhere)


def _before(run: Run) -> Iterable[Any]:
    said = run.state.original_input
    return [*([] if isinstance(said, str) else said), *(item.raw_item for item in run.state.model_items)]


async def _incomplete(run: Run, agent: Agent[Any]) -> Outcome:
    """Return what becomes of an answer that was cut off. Raises ModelIncompleteError unless the run says otherwise."""
    state = run.state
    error = exceptions.ModelIncompleteError(state.incomplete_reason, state.model_responses[-1])
    if run.config.on_incomplete == "return" and "incomplete" not in run.handlers:
        return FinalOutput(ItemHelpers.text_message_outputs(state.turn))
    return await instead_of(run, agent, error)


# --- what comes of it ------------------------------------------------------------------------------------------------


async def _outcome(run: Run, agent: Agent[Any], answer: Answer) -> Outcome:
    """Return what comes after the turn, once its tools have run."""
    executed = Executed()
    if answer.work or answer.handoffs:
        await run.breathe()  # a tool is seen to be called before it runs
        run.guards.raise_known()
        executed = await execute(run, agent, answer.work)
        await run.guards.settle()
    schema, context = run.schema(agent), run.state.context
    by_tools = None
    if not executed.pending and not answer.handoffs:
        text = schema is None or schema.is_plain_text()
        by_tools = await final_by_tools(agent, context, executed.results, text=text)
    try:
        outcome = decide(answer, schema, executed.pending, by_tools)
    except (exceptions.ModelRefusalError, exceptions.ModelBehaviorError) as error:
        return await instead_of(run, agent, error)
    if isinstance(outcome, RunAgain) and outcome.silent:
        silence = exceptions.ModelBehaviorError("Model returned no final output for the structured output type.")
        return await handled(run, agent, silence) or outcome
    return outcome


async def _after(run: Run, agent: Agent[Any], outcome: Outcome) -> Sequence[StreamEvent]:
    """Return the events of what a turn leads to, once it is done and saved."""
    state = run.state
    await run.guards.settle()
    match outcome:
        case FinalOutput():
            await finish(run, agent, outcome)
        case RunAgain():
            await run.save()
            state.end_turn()
        case Interruption(pending):
            await interrupt(run, agent, pending)
        case HandoffTo(calls):
            target, outputs = await hand_over(run, agent, calls)
            await pass_on(run, agent, target, outputs, calls[0].handoff)
            return [*filter(None, map(item_event, outputs)), AgentUpdatedStreamEvent(target)]
    return ()
