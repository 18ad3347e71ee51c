"""What holds for a whole run. It lives in `antiphon.run.config`."""

from .run.config import (
    CallModelData,
    ModelInputData,
    RunConfig,
    ToolErrorFormatterArgs,
    ToolExecutionConfig,
)

__all__ = ["CallModelData", "ModelInputData", "RunConfig", "ToolErrorFormatterArgs", "ToolExecutionConfig"]
