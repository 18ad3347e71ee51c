"""Agents. They live in `antiphon.run.agent`."""

from .run.agent import (
    Agent,
    AgentBase,
    DynamicPromptFunction,
    GenerateDynamicPromptData,
    MCPConfig,
    Prompt,
    StopAtTools,
    ToolsToFinalOutputFunction,
    ToolsToFinalOutputResult,
)
from .run.agent_tool import AgentToolStreamEvent

__all__ = [
    "Agent",
    "AgentBase",
    "AgentToolStreamEvent",
    "DynamicPromptFunction",
    "GenerateDynamicPromptData",
    "MCPConfig",
    "Prompt",
    "StopAtTools",
    "ToolsToFinalOutputFunction",
    "ToolsToFinalOutputResult",
]
