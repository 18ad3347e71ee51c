"""Run items, answers and guardrail results as JSON data, and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from typing import Any, TypeAlias, get_args

from antiphon.exceptions import UserError
from antiphon.models.interface import ModelResponse
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
from .state_shape import Response
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


# list of a state -> the classes of what guardrails found, of the guardrails, and of what they returned
RESULTS: dict[str, tuple[type[Any], type[Any], type[Any]]] = {
    "input_guardrail_results": (InputGuardrailResult, InputGuardrail, GuardrailFunctionOutput),
    "output_guardrail_results": (OutputGuardrailResult, OutputGuardrail, GuardrailFunctionOutput),
    "tool_input_guardrail_results": (ToolInputGuardrailResult, ToolInputGuardrail, ToolGuardrailFunctionOutput),
    "tool_output_guardrail_results": (ToolOutputGuardrailResult, ToolOutputGuardrail, ToolGuardrailFunctionOutput),
}


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


def read_response(stored: Response) -> ModelResponse:
    """Return what `response_json` gave."""
    return ModelResponse(
        output=[output_item(item) for item in stored.output],
        usage=stored.usage,
        response_id=stored.response_id,
        request_id=stored.request_id,
        raw_usage=stored.raw_usage,
        status=stored.status,
        incomplete_reason=stored.incomplete_reason,
    )


# --- guardrail results -----------------------------------------------------------------------------------------------


def results_json(results: Iterable[Any], graph: AgentGraph) -> list[Json]:
    """Return what guardrails found as JSON data, of whatever kind."""
    return [_result_json(one, graph) for one in results]


def _result_json(result: Any, graph: AgentGraph) -> Json:
    data: Json = {"guardrail": {"name": result.guardrail.get_name()}, "output": plain(result.output)}
    if isinstance(result, OutputGuardrailResult):
        data |= {"agent": graph.reference(result.agent), "agent_output": plain(result.agent_output)}
    return data


def read_results(name: str, results: Iterable[Json], graph: AgentGraph) -> list[Any]:
    """Return what guardrails found, as `results_json` gave it; `name` is that of the list."""
    result, guardrail, output = RESULTS[name]
    found: list[Any] = []
    for data in results:
        more: Json = {}
        if result is OutputGuardrailResult:
            more = {"agent": graph.find(data.get("agent")), "agent_output": data["agent_output"]}
        found.append(
            result(guardrail=guardrail(_gone, data["guardrail"]["name"]), output=output(**data["output"]), **more)
        )
    return found


def _gone(*_: Any) -> Any:
    raise UserError("a guardrail of a restored result cannot run: it is only its name")
