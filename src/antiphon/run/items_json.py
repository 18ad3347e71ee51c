"""Run items, answers and guardrail results as JSON data, and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from typing import Any, TypeAlias, get_args

from antiphon.exceptions import UserError
from antiphon.models.interface import ModelResponse
from antiphon.models.usage import InputTokensDetails, OutputTokensDetails, RequestUsage, Usage
from antiphon.stream.chunk import plain

from .graph import AgentGraph
from .guardrails import (
    GuardrailFunctionOutput,
    InputGuardrail,
    InputGuardrailResult,
    OutputGuardrail,
    OutputGuardrailResult,
)
from .items import RunItem
from .tool import ToolOrigin
from .tool_guardrails import (
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailResult,
    ToolOutputGuardrail,
    ToolOutputGuardrailResult,
)

Json: TypeAlias = dict[str, Any]

# `type` of a run item -> its class
CLASSES: dict[str, type[Any]] = {cls.type: cls for cls in get_args(RunItem)}
# fields of items that are kept as they are, where they are set
PLAIN = ("description", "title", "tool_name", "tool_namespace", "resolved_tool_name", "input_id", "custom_data")
AGENTS = ("source_agent", "target_agent")


def item_json(item: RunItem, graph: AgentGraph) -> Json:
    """Return an item as JSON data."""
    held = vars(item)
    data: Json = {"type": item.type, "raw_item": plain(item.raw_item), "agent": graph.reference(item.agent)}
    data |= {name: plain(held[name]) for name in PLAIN if held.get(name) is not None}
    if "output" in held:
        data["output"] = plain(held["output"])
    if isinstance(held.get("tool_origin"), ToolOrigin):
        data["tool_origin"] = held["tool_origin"].to_json_dict()
    return data | {name: graph.reference(getattr(item, name)) for name in AGENTS if name in getattr(item, "held", ())}


def read_item(data: Json, graph: AgentGraph) -> RunItem:
    """Return what `item_json` gave. Raises UserError for a type that is none, or an agent that is not there."""
    cls = CLASSES.get(str(data.get("type")))
    if cls is None:
        raise UserError(f"a run state has an item of type {data.get('type')!r}; there are: {', '.join(CLASSES)}")
    held: Json = {name: data[name] for name in (*PLAIN, "output") if name in data}
    held |= {name: graph.find(data[name]) for name in AGENTS if name in data}
    if "tool_origin" in data:
        held["tool_origin"] = ToolOrigin.from_json_dict(data["tool_origin"])
    made: RunItem = cls(agent=graph.find(data.get("agent")), raw_item=output_item(data["raw_item"]), **held)
    return made


@cache
def _output_classes() -> dict[str, Any]:
    from openai.types.responses import ResponseOutputItem

    union = get_args(get_args(ResponseOutputItem)[0])
    return {get_args(one.model_fields["type"].annotation)[0]: one for one in union}


def output_item(data: Json) -> Any:
    """Return an output item as the openai object that a model gives; what is none, such as a tool's output, as it is."""
    cls = _output_classes().get(str(data.get("type")))
    if cls is None or "_output" in str(data.get("type")):
        return data
    from pydantic import ValidationError

    try:
        return cls.model_validate(data)
    except ValidationError:  # what a provider leaves out stays left out
        return cls.construct(**data)


def response_json(response: ModelResponse) -> Json:
    """Return an answer as JSON data."""
    return {
        "usage": asdict(response.usage),
        "output": [plain(item) for item in response.output],
        "response_id": response.response_id,
        "request_id": response.request_id,
        "raw_usage": plain(response.raw_usage),
        "status": response.status,
        "incomplete_reason": response.incomplete_reason,
    }


def read_response(data: Json) -> ModelResponse:
    """Return what `response_json` gave."""
    made = {"output": [output_item(item) for item in data["output"]], "usage": read_usage(data["usage"])}
    held: Json = {**data, **made}
    return ModelResponse(**held)


def read_usage(data: Json) -> Usage:
    """Return a usage that was stored."""
    held: Json = {**data, "request_usage_entries": [_read_request(one) for one in data["request_usage_entries"]]}
    return Usage(**held)


def _read_request(data: Json) -> RequestUsage:
    details: Json = {
        "input_tokens_details": InputTokensDetails(**data["input_tokens_details"]),
        "output_tokens_details": OutputTokensDetails(**data["output_tokens_details"]),
    }
    return RequestUsage(**{**data, **details})


# --- guardrail results -----------------------------------------------------------------------------------------------


def results_json(results: Iterable[Any], graph: AgentGraph) -> list[Json]:
    """Return what guardrails found as JSON data, of whatever kind."""
    return [_result_json(one, graph) for one in results]


def _result_json(result: Any, graph: AgentGraph) -> Json:
    data: Json = {"guardrail": {"name": result.guardrail.get_name()}, "output": plain(result.output)}
    if isinstance(result, OutputGuardrailResult):
        data |= {"agent": graph.reference(result.agent), "agent_output": plain(result.agent_output)}
    return data


def read_input_result(data: Json) -> InputGuardrailResult:
    """Return what a guardrail found in the input."""
    guardrail: InputGuardrail[Any] = InputGuardrail(_gone, data["guardrail"]["name"])
    return InputGuardrailResult(guardrail, GuardrailFunctionOutput(**data["output"]))


def read_output_result(data: Json, graph: AgentGraph) -> OutputGuardrailResult:
    """Return what a guardrail found in the output."""
    guardrail: OutputGuardrail[Any] = OutputGuardrail(_gone, data["guardrail"]["name"])
    agent = graph.find(data.get("agent"))
    return OutputGuardrailResult(guardrail, data["agent_output"], agent, GuardrailFunctionOutput(**data["output"]))


def read_tool_input_result(data: Json) -> ToolInputGuardrailResult:
    """Return what a guardrail found in a call."""
    guardrail: ToolInputGuardrail[Any] = ToolInputGuardrail(_gone, data["guardrail"]["name"])
    return ToolInputGuardrailResult(guardrail, ToolGuardrailFunctionOutput(**data["output"]))


def read_tool_output_result(data: Json) -> ToolOutputGuardrailResult:
    """Return what a guardrail found in what a tool returned."""
    guardrail: ToolOutputGuardrail[Any] = ToolOutputGuardrail(_gone, data["guardrail"]["name"])
    return ToolOutputGuardrailResult(guardrail, ToolGuardrailFunctionOutput(**data["output"]))


def _gone(*_: Any) -> Any:
    raise UserError("a guardrail of a restored result cannot run: it is only its name")
