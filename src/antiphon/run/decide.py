"""What comes after a turn: a closed union, decided by a function that only looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from antiphon.exceptions import ModelBehaviorError, ModelRefusalError

from .agent import ToolsToFinalOutputResult
from .classify import Answer, HandoffRun
from .items import HandoffCallItem, ItemHelpers, MessageOutputItem, ToolApprovalItem, ToolCallItem, ToolCallOutputItem


@dataclass(frozen=True, slots=True)
class FinalOutput:
    """The run has its final output."""

    output: Any


@dataclass(frozen=True, slots=True)
class RunAgain:
    """The model is called again, with what the turn brought."""


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
    answer: Answer,
    schema: Any,
    pending: Sequence[ToolApprovalItem] = (),
    by_tools: ToolsToFinalOutputResult | None = None,
) -> Outcome:
    """Return what comes after a turn whose tools have run.

    In this order: calls that wait interrupt, a handoff wins, the tools may have said that they are the final output,
    and an answer with nothing left to do is final. `schema`: what the output is parsed as; None is text. Raises
    ModelRefusalError for a refusal, ModelBehaviorError for an output that is not what the schema says.
    """
    handoffs = tuple(one for one in answer.work if isinstance(one, HandoffRun))
    if pending:
        return Interruption(tuple(pending))
    if handoffs:
        return HandoffTo(handoffs)
    if by_tools is not None and by_tools.is_final_output:
        return FinalOutput(by_tools.final_output)
    return RunAgain() if answer.work else _of_message(answer, schema)


def _of_message(answer: Answer, schema: Any) -> Outcome:
    messages = [item for item in answer.items if isinstance(item, MessageOutputItem)]
    if not messages and (answer.repeated or any(isinstance(item, USES) for item in answer.items)):
        return RunAgain()  # the server's own tools have run, and the model has not spoken yet
    last = messages[-1].raw_item if messages else None
    refusal = ItemHelpers.extract_refusal(last)
    if refusal:
        raise ModelRefusalError(refusal)
    text = ItemHelpers.extract_text(last)
    if schema is None or schema.is_plain_text():
        return FinalOutput(text or "")
    return FinalOutput(schema.validate_json(text)) if text else RunAgain()


def no_output() -> ModelBehaviorError:
    """Return the error of an answer without the text that a structured output is parsed from."""
    return ModelBehaviorError("Model returned no final output for the structured output type.")
