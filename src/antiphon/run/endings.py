"""How a run ends: with its final output, checked; or, where an error has a handler, with what that says instead."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from antiphon.exceptions import AgentsException, ModelBehaviorError, OutputGuardrailTripwireTriggered, UserError
from antiphon.ids import RandomIds
from antiphon.stream.chunk import plain

from .awaiting import settled
from .config import RunErrorData, RunErrorHandlerInput, RunErrorHandlerResult
from .decide import FinalOutput
from .guards import check_output
from .items import ItemHelpers, MessageOutputItem
from .output_schema import AgentOutputSchemaBase
from .running import Run
from .session import before_output, without_output

if TYPE_CHECKING:
    from .agent import Agent

ErrorKind: TypeAlias = Literal["max_turns", "model_refusal", "invalid_final_output", "incomplete"]


async def finish(run: Run, agent: Agent[Any], output: Any) -> None:
    """End a run with its final output, once the guardrails have let it through; then all is in the session.

    Raises OutputGuardrailTripwireTriggered where one has not: the session keeps what the tools did, and no message.
    """
    state = run.state
    await run.hooks.agent_end(run.hook_context(), agent, output)
    guardrails = [*agent.output_guardrails, *(run.config.output_guardrails or ())]
    if guardrails:
        await run.save(len(before_output(state.turn)))  # it is done, whatever is said of the output
    try:
        await check_output(guardrails, state.context, agent, output, state.output_guardrail_results)
    except OutputGuardrailTripwireTriggered:
        await run.keep(without_output(state.turn[state.turn_saved :]))
        raise
    await run.save()
    state.final_output = output
    state.end_turn()
    state.ended = True


async def instead_of(run: Run, agent: Agent[Any], kind: ErrorKind, error: AgentsException) -> FinalOutput:
    """Return the final output that the handler of an error gives. Raises the error where there is none."""
    handler = run.handlers.get(kind)
    if handler is None:
        raise error
    given: Any = await settled(handler(RunErrorHandlerInput(error, run.state.context, _data(run))))
    if given is None:
        raise error
    result = _result(given)
    schema = run.schema(agent)
    output, text = _checked(result.final_output, schema)
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
            raise UserError(
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
        except ModelBehaviorError:
            continue
    raise UserError(f"the final output of an error handler, {type(output).__name__}, is no {schema.name()}")


def _message(text: str) -> Any:
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    part = ResponseOutputText(type="output_text", text=text, annotations=[], logprobs=[])
    return ResponseOutputMessage(
        id=RandomIds().make("msg_"), type="message", role="assistant", status="completed", content=[part]
    )
