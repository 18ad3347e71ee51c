"""Agents. They live in `antiphon.run.agent`."""

from .run.agent import (
    Agent,
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
    "AgentToolStreamEvent",
    "DynamicPromptFunction",
    "GenerateDynamicPromptData",
    "MCPConfig",
    "Prompt",
    "StopAtTools",
    "ToolsToFinalOutputFunction",
    "ToolsToFinalOutputResult",
]
