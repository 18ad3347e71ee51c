"""Hooks. They live in `antiphon.run.hooks`."""

from .run.hooks import AgentHooks, AgentHooksBase, RunHooks, RunHooksBase

__all__ = ["AgentHooks", "AgentHooksBase", "RunHooks", "RunHooksBase"]
