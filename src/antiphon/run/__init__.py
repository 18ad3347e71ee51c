"""The agent runner: agents, tools, handoffs, approvals and sessions over any `Model`.

    input -> model call -> items -> tools -> outcome (final output | run again | handoff | interruption)

One loop, an async generator of stream events, is every kind of run: a plain run drains it, a streamed one hands its
events out, a resumed one starts it from a `RunState`. Names are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.lazily import lazily

if TYPE_CHECKING:
    from .config import CallModelData, ModelInputData, RunConfig, ToolErrorFormatterArgs, ToolExecutionConfig
    from .runner import (
        DEFAULT_MAX_TURNS,
        AgentRunner,
        Runner,
        get_default_agent_runner,
        set_default_agent_runner,
    )

# module -> its public names
_NAMES: dict[str, tuple[str, ...]] = {
    ".config": ("CallModelData", "ModelInputData", "RunConfig", "ToolErrorFormatterArgs", "ToolExecutionConfig"),
    ".runner": (
        "DEFAULT_MAX_TURNS",
        "AgentRunner",
        "Runner",
        "get_default_agent_runner",
        "set_default_agent_runner",
    ),
}
__all__ = [
    "DEFAULT_MAX_TURNS",
    "AgentRunner",
    "CallModelData",
    "ModelInputData",
    "RunConfig",
    "Runner",
    "ToolErrorFormatterArgs",
    "ToolExecutionConfig",
    "get_default_agent_runner",
    "set_default_agent_runner",
]

__getattr__, __dir__ = lazily(__name__, _NAMES)
