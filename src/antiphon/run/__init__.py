"""The agent runner: agents, tools, handoffs, approvals and sessions over any `Model`.

    input -> model call -> items -> tools -> outcome (final output | run again | handoff | interruption)

One loop, an async generator of stream events, is every kind of run: a plain run drains it, a streamed one hands its
events out, a resumed one starts it from a `RunState`. Names are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.lazily import lazily

if TYPE_CHECKING:
    from .config import (
        DEFAULT_MAX_TURNS,
        CallModelData,
        CallModelInputFilter,
        ModelInputData,
        ReasoningItemIdPolicy,
        RunConfig,
        ToolErrorFormatter,
        ToolErrorFormatterArgs,
        ToolExecutionConfig,
        ToolNameCollisionPolicy,
        ToolNotFoundBehavior,
    )
    from .context import RunContextWrapper
    from .runner import AgentRunner, Runner, RunOptions, get_default_agent_runner, set_default_agent_runner
    from .state import RunState

# module -> its public names
_NAMES: dict[str, tuple[str, ...]] = {
    ".config": (
        "DEFAULT_MAX_TURNS",
        "CallModelData",
        "CallModelInputFilter",
        "ModelInputData",
        "ReasoningItemIdPolicy",
        "RunConfig",
        "ToolErrorFormatter",
        "ToolErrorFormatterArgs",
        "ToolExecutionConfig",
        "ToolNameCollisionPolicy",
        "ToolNotFoundBehavior",
    ),
    ".context": ("RunContextWrapper",),
    ".runner": ("AgentRunner", "RunOptions", "Runner", "get_default_agent_runner", "set_default_agent_runner"),
    ".state": ("RunState",),
}
__all__ = [
    "DEFAULT_MAX_TURNS",
    "AgentRunner",
    "CallModelData",
    "CallModelInputFilter",
    "ModelInputData",
    "ReasoningItemIdPolicy",
    "RunConfig",
    "RunContextWrapper",
    "RunOptions",
    "RunState",
    "Runner",
    "ToolErrorFormatter",
    "ToolErrorFormatterArgs",
    "ToolExecutionConfig",
    "ToolNameCollisionPolicy",
    "ToolNotFoundBehavior",
    "get_default_agent_runner",
    "set_default_agent_runner",
]

__getattr__, __dir__ = lazily(__name__, _NAMES)
