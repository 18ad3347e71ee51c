"""Run items, answers, guardrail results and agents as JSON data, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from typing import Any, get_args

from antiphon.exceptions import UserError
from antiphon.models.interface import ModelResponse
from antiphon.stream.chunk import plain
from antiphon.tools.tool import FunctionTool, ToolOrigin

from .agent import Agent, is_agent
from .guardrails import Guardrail, InputGuardrail, OutputGuardrail, ToolInputGuardrail, ToolOutputGuardrail
from .handoffs import Handoff
from .items import RunItem
from .reading import Json
from .state import RunState

# `type` of a run item -> its class
CLASSES: dict[str, type[Any]] = {cls.type: cls for cls in get_args(RunItem)}
# fields of items that are kept as they are, where they are set
PLAIN = ("description", "title", "tool_name", "tool_namespace", "resolved_tool_name", "input_id", "custom_data")
AGENTS = ("source_agent", "target_agent")


# list of a state -> the guardrails whose results are in it
RESULTS: dict[str, type[Guardrail]] = {
    "input_guardrail_results": InputGuardrail,
    "output_guardrail_results": OutputGuardrail,
    "tool_input_guardrail_results": ToolInputGuardrail,
    "tool_output_guardrail_results": ToolOutputGuardrail,
}


class AgentGraph:
    """Agents by identity: the name, and for a further agent of the same name with a number, in the order of finding."""

    def __init__(self, start: Agent[Any], *others: Agent[Any] | None) -> None:
        self.agents: dict[str, Agent[Any]] = {}
        self._identities: dict[int, str] = {}
        for first in (start, *others):
            queue = [] if first is None else [first]
            for agent in queue:
                if id(agent) not in self._identities:
                    self._name(agent)
                    queue.extend(_next(agent))

    def reference(self, agent: Agent[Any] | None) -> Json | None:
        """Return an agent as JSON data; None for one that is gone."""
        if agent is None:
            return None
        identity = self._identities.get(id(agent)) or self._name(agent)
        return {"name": agent.name} if identity == agent.name else {"name": agent.name, "identity": identity}

    def find(self, reference: Json | None) -> Agent[Any]:
        """Return the agent of a reference; for None the first one. Raises UserError where there is none of that name."""
        if reference is None:
            return next(iter(self.agents.values()))
        identity = str(reference.get("identity") or reference.get("name"))
        if identity not in self.agents:
            raise UserError(
                f"Run state agent not found in agent map: {identity!r}. From the agent given these can be reached, by "
                f"handoffs and as tools: {', '.join(map(repr, self.agents))}"
            )
        return self.agents[identity]

    def _name(self, agent: Agent[Any]) -> str:
        identity, number = agent.name, 1
        while identity in self.agents:
            number += 1
            identity = f"{agent.name}#{number}"
        self.agents[identity] = agent
        self._identities[id(agent)] = identity
        return identity


def _next(agent: Agent[Any]) -> Iterator[Agent[Any]]:
    for one in agent.handoffs:
        found: Any = one.agent if isinstance(one, Handoff) else one  # pyright: ignore[reportUnknownMemberType]
        if is_agent(found):
            yield found
    for tool in agent.tools:
        if isinstance(tool, FunctionTool) and is_agent(tool.agent):
            yield tool.agent


def item_json(item: RunItem, graph: AgentGraph) -> Json:
    """Return an item as JSON data."""
    held = vars(item)
    data: Json = {"type": item.type, "raw_item": plain(item.raw_item), "agent": graph.reference(item.agent)}
    data |= {name: plain(held[name]) for name in PLAIN if held.get(name) is not None}
    if "output" in held:
        data["output"] = plain(held["output"])
    if isinstance(held.get("tool_origin"), ToolOrigin):
        data["tool_origin"] = held["tool_origin"].to_json_dict()
    return data | {name: graph.reference(getattr(item, name)) for name in AGENTS if name in item.held}


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
    data: Json = plain({**vars(response), "usage": asdict(response.usage)})
    return data


# --- guardrail results -----------------------------------------------------------------------------------------------


def results_json(state: RunState[Any], graph: AgentGraph) -> dict[str, list[Json]]:
    """Return what guardrails found as JSON data, of whatever kind."""
    return {name: [_result_json(one, graph) for one in getattr(state, name)] for name in RESULTS}


def _result_json(result: Any, graph: AgentGraph) -> Json:
    data: Json = {"guardrail": {"name": result.guardrail.get_name()}, "output": plain(result.output)}
    if isinstance(result.guardrail, OutputGuardrail):
        data |= {"agent": graph.reference(result.agent), "agent_output": plain(result.agent_output)}
    return data


def read_results(held: Json, graph: AgentGraph) -> Json:
    """Return what guardrails found, as `results_json` gave it."""
    return {name: [_read_result(kind, one, graph) for one in held[name]] for name, kind in RESULTS.items()}


def _read_result(kind: type[Any], data: Json, graph: AgentGraph) -> Any:
    held: Json = {"guardrail": kind(_gone, data["guardrail"]["name"]), "output": kind.finds(**data["output"])}
    if kind is OutputGuardrail:
        held |= {"agent": graph.find(data.get("agent")), "agent_output": data["agent_output"]}
    return kind.result(**held)


def _gone(*_: Any) -> Any:
    raise UserError("a guardrail of a restored result cannot run: it is only its name")
