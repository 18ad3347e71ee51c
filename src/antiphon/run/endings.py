"""What comes after a turn, a closed union; and how a run ends: with its final output, checked, or, where an error has a
handler, with what that says instead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from antiphon import exceptions
from antiphon.ids import RandomIds
from antiphon.stream.chunk import plain

from .agent import Agent, ToolsToFinalOutputResult
from .awaiting import settled
from .classify import Answer, HandoffRun
from .config import RunErrorData, RunErrorHandlerInput, RunErrorHandlerResult
from .guardrails import OutputGuardrail
from .guards import all_of, check_output
from .items import HandoffCallItem, ItemHelpers, MessageOutputItem, ToolApprovalItem, ToolCallItem, ToolCallOutputItem
from .output_schema import AgentOutputSchemaBase
from .running import Run
from .session import before_output, without_output

# what may stop a run -> the key of its handler
KINDS: dict[type[exceptions.AgentsException], str] = {
    exceptions.MaxTurnsExceeded: "max_turns",
    exceptions.ModelRefusalError: "model_refusal",
    exceptions.ModelBehaviorError: "invalid_final_output",
    exceptions.ModelIncompleteError: "incomplete",
}


@dataclass(frozen=True, slots=True)
class FinalOutput:
    """The run has its final output. `by_tools`: it is what they returned, not what the model said."""

    output: Any
    by_tools: bool = False


@dataclass(frozen=True, slots=True)
class RunAgain:
    """The model is called again, with what the turn brought. `silent`: that is nothing, and an output was expected."""

    silent: bool = False


@dataclass(frozen=True, slots=True)
class HandoffTo:
    """Another agent takes over: the first of the calls wins, the others are told so."""

    calls: tuple[HandoffRun, ...]


@dataclass(frozen=True, slots=True)
class Interruption:
    """The run stops until these calls are decided about."""

    pending: tuple[ToolApprovalItem, ...]


Outcome: TypeAlias = FinalOutput | RunAgain | HandoffTo | Interruption

USES = (ToolCallItem, ToolCallOutputItem, HandoffCallItem)


def decide(
    answer: Answer, schema: Any, pending: Sequence[ToolApprovalItem], by_tools: ToolsToFinalOutputResult | None
) -> Outcome:
    """Return what comes after a turn whose tools have run.

    In this order: calls that wait interrupt, a handoff wins, the tools may have said that they are the final output,
    and an answer with nothing left to do is final. `schema`: what the output is parsed as; None is text. Raises
    ModelRefusalError for a refusal, ModelBehaviorError for an output that is not what the schema says.
    """
    if pending:
        return Interruption(tuple(pending))
    if answer.handoffs:
        return HandoffTo(tuple(answer.handoffs))
    if by_tools is not None and by_tools.is_final_output:
        return FinalOutput(by_tools.final_output, by_tools=True)
    return RunAgain() if answer.work else _of_message(answer, schema)


def _of_message(answer: Answer, schema: Any) -> Outcome:
    messages = [item for item in answer.items if isinstance(item, MessageOutputItem)]
    if not messages and (answer.repeated or any(isinstance(item, USES) for item in answer.items)):
        return RunAgain()  # the server's own tools have run, and the model has not spoken yet
    last = messages[-1].raw_item if messages else None
    refusal = ItemHelpers.extract_refusal(last)
    if refusal:
        raise exceptions.ModelRefusalError(refusal)
    text = ItemHelpers.extract_text(last)
    if schema is None or schema.is_plain_text():
        return FinalOutput(text or "")
    return FinalOutput(schema.validate_json(text)) if text else RunAgain(silent=not answer.repeated)


# --- how it ends -----------------------------------------------------------------------------------------------------


async def finish(run: Run, agent: Agent[Any], end: FinalOutput) -> None:
    """End a run with its final output, once the guardrails have let it through; then all is in the session.

    Raises OutputGuardrailTripwireTriggered where one has not: the session keeps what the tools did, and no message, nor
    what the tools returned where that is the output. What a guardrail raises else says nothing against the output.
    """
    state = run.state
    await run.hooks.agent_end(run.hook_context(), agent, end.output)
    guardrails = _guardrails(run, agent)
    if guardrails and not end.by_tools:
        await run.save(len(before_output(state.turn)))  # it is done, whatever is said of the output
    try:
        await check_output(guardrails, agent, end.output, state)
    except exceptions.OutputGuardrailTripwireTriggered:
        await run.keep(without_output(state.turn[state.turn_saved :], withheld=end.by_tools))
        if end.by_tools:
            state.turn_saved = len(state.turn)  # the calls have their outputs there: a retry adds no others
        raise
    except Exception:  # as the docstring says
        await run.save()
        raise
    await run.save()
    state.final_output = end.output
    state.end_turn()
    state.ended = True


async def interrupt(run: Run, agent: Agent[Any], pending: Sequence[ToolApprovalItem]) -> None:
    """Stop until these calls are decided about. What was done is in the session.

    But for what tools returned, where that may come to be the final output and guardrails have not seen it.
    """
    state = run.state
    state.pending = list(pending)
    unseen = agent.tool_use_behavior != "run_llm_again" and _guardrails(run, agent)
    outputs = (n for n, item in enumerate(state.turn) if isinstance(item, ToolCallOutputItem))
    await run.save(next(outputs, None) if unseen else None)


def _guardrails(run: Run, agent: Agent[Any]) -> list[OutputGuardrail[Any]]:
    return all_of(OutputGuardrail, "output_guardrail", agent.output_guardrails, run.config.output_guardrails)


async def instead_of(run: Run, agent: Agent[Any], error: exceptions.AgentsException) -> FinalOutput:
    """Return the final output that the handler of an error gives. Raises the error where there is none."""
    output = await handled(run, agent, error)
    if output is None:
        raise error
    return output


async def handled(run: Run, agent: Agent[Any], error: exceptions.AgentsException) -> FinalOutput | None:
    """Return the final output that the handler of an error gives; None where there is none."""
    handler = run.handlers.get(next(kind for cls, kind in KINDS.items() if isinstance(error, cls)))
    if handler is None:
        return None
    given: Any = await settled(handler(RunErrorHandlerInput(error, run.state.context, _data(run))))
    if given is None:
        return None
    result = _result(given)
    output, text = _checked(result.final_output, run.schema(agent))
    if result.include_in_history:
        run.state.turn.append(MessageOutputItem(agent, _message(text)))
    return FinalOutput(output)


def _data(run: Run) -> RunErrorData:
    state = run.state
    output = state.inputs_of(state.items)
    history = [*ItemHelpers.input_to_new_input_list(state.original_input), *output]
    responses = list(state.model_responses)
    return RunErrorData(state.original_input, state.items, history, output, responses, state.current_agent)


def _result(given: Any) -> RunErrorHandlerResult:
    """Return what a handler said: the result, a mapping with its keys, or the output itself."""
    if isinstance(given, RunErrorHandlerResult):
        return given
    held = dict(cast("Mapping[str, Any]", given)) if isinstance(given, Mapping) else {}
    if "final_output" in held:
        extra = sorted(set(held) - {"final_output", "include_in_history"})
        if extra:
            raise exceptions.UserError(
                f"an error handler returned {', '.join(extra)}: its keys are final_output and include_in_history"
            )
        return RunErrorHandlerResult(**held)
    return RunErrorHandlerResult(given)


def _checked(output: Any, schema: AgentOutputSchemaBase | None) -> tuple[Any, str]:
    """Return a handler's output as the agent's type, and the text that a model would have said for it.

    Raises UserError where it does not fit.
    """
    if schema is None or schema.is_plain_text():
        return output, str(output)
    for held in (output, {"response": output}):  # a type that is no object is wrapped in one
        text = json.dumps(plain(held), ensure_ascii=False)
        try:
            return schema.validate_json(text), text
        except exceptions.ModelBehaviorError:
            continue
    raise exceptions.UserError(f"the final output of an error handler, {type(output).__name__}, is no {schema.name()}")


def _message(text: str) -> Any:
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    part = ResponseOutputText(type="output_text", text=text, annotations=[], logprobs=[])
    return ResponseOutputMessage(
        id=RandomIds().make("msg_"), type="message", role="assistant", status="completed", content=[part]
    )
