"""Agents. They live in `antiphon.run.agent`."""

from .run.agent import (
    Agent,
    GenerateDynamicPromptData,
    MCPConfig,
    StopAtTools,
    ToolsToFinalOutputFunction,
    ToolsToFinalOutputResult,
)
from .run.agent_tool import AgentToolStreamEvent

__all__ = [
    "Agent",
    "AgentToolStreamEvent",
    "GenerateDynamicPromptData",
    "MCPConfig",
    "StopAtTools",
    "ToolsToFinalOutputFunction",
    "ToolsToFinalOutputResult",
]
