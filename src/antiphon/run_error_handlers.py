"""What a run does about certain errors. It lives in `antiphon.run.config`."""

from .run.config import (
    RunErrorData,
    RunErrorHandler,
    RunErrorHandlerInput,
    RunErrorHandlerResult,
    RunErrorHandlers,
)

__all__ = ["RunErrorData", "RunErrorHandler", "RunErrorHandlerInput", "RunErrorHandlerResult", "RunErrorHandlers"]
