"""Where a run stands. It lives in `antiphon.run.state`."""

from .run.state import RunState

__all__ = ["RunState"]
