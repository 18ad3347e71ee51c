"""The agents that can be reached from one: by handoffs, and as tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from antiphon.exceptions import UserError

from .agent import Agent, is_agent
from .handoffs import Handoff
from .tool import FunctionTool

Json = dict[str, Any]


class AgentGraph:
    """Agents by identity: the name, and for a further agent of the same name with a number, in the order of finding."""

    def __init__(self, start: Agent[Any], *others: Agent[Any] | None) -> None:
        self.agents: dict[str, Agent[Any]] = {}
        self._identities: dict[int, str] = {}
        for first in (start, *others):
            queue = [] if first is None else [first]
            while queue:
                agent = queue.pop(0)
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
