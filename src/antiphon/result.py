"""What runs come to. They live in `antiphon.run.result`."""

from .run.result import AgentToolInvocation, RunResult, RunResultBase, RunResultStreaming

__all__ = ["AgentToolInvocation", "RunResult", "RunResultBase", "RunResultStreaming"]
