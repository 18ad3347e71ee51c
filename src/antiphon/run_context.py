"""What the caller's code is given of a run. It lives in `antiphon.run.context`."""

from .run.context import AgentHookContext, RunContextWrapper, TContext

__all__ = ["AgentHookContext", "RunContextWrapper", "TContext"]
