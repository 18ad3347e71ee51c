"""The agent runner: agents, tools, handoffs, approvals and sessions over any `Model`.

    input -> model call -> items -> tools -> outcome (final output | run again | handoff | interruption)

One loop, an async generator of stream events, is every kind of run: a plain run drains it, a streamed one hands its
events out, a resumed one starts it from a `RunState`. Names are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.lazily import lazily

if TYPE_CHECKING:
    from .config import DEFAULT_MAX_TURNS as DEFAULT_MAX_TURNS
    from .config import CallModelData as CallModelData
    from .config import CallModelInputFilter as CallModelInputFilter
    from .config import ModelInputData as ModelInputData
    from .config import ReasoningItemIdPolicy as ReasoningItemIdPolicy
    from .config import RunConfig as RunConfig
    from .config import ToolErrorFormatter as ToolErrorFormatter
    from .config import ToolErrorFormatterArgs as ToolErrorFormatterArgs
    from .config import ToolExecutionConfig as ToolExecutionConfig
    from .config import ToolNameCollisionPolicy as ToolNameCollisionPolicy
    from .config import ToolNotFoundBehavior as ToolNotFoundBehavior
    from .context import RunContextWrapper as RunContextWrapper
    from .runner import AgentRunner as AgentRunner
    from .runner import Runner as Runner
    from .runner import RunOptions as RunOptions
    from .runner import get_default_agent_runner as get_default_agent_runner
    from .runner import set_default_agent_runner as set_default_agent_runner
    from .state import RunState as RunState

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

__getattr__, __dir__ = lazily(__name__, _NAMES)
