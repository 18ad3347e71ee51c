"""Errors of the OpenAI SDK as ours: by their status, without keys."""

from __future__ import annotations

import openai

from antiphon.concealing import Hide
from antiphon.errors import (
    AuthenticationFailed,
    BadRequest,
    ConnectionFailed,
    ContextLengthExceeded,
    NotFound,
    ProviderError,
    RateLimited,
    ServerFailed,
    TimedOut,
)

from .waits import retry_after

# status -> what is raised; others by their first digit
STATUSES: dict[int, type[ProviderError]] = {
    401: AuthenticationFailed,
    403: AuthenticationFailed,
    404: NotFound,
    408: ServerFailed,
    429: RateLimited,
}


def typed(error: openai.OpenAIError, hide: Hide) -> ProviderError:
    """Return an error of the SDK as one of ours."""
    message = hide(str(error)) or type(error).__name__
    if isinstance(error, openai.APITimeoutError):
        return TimedOut(message)
    if isinstance(error, openai.APIConnectionError):
        return ConnectionFailed(message)
    code = hide(error.code) if isinstance(error, openai.APIError) and error.code else None
    if not isinstance(error, openai.APIStatusError):
        return ServerFailed(message, code=code)
    status = error.status_code
    kind = STATUSES.get(status, BadRequest if status < 500 else ServerFailed)
    return (ContextLengthExceeded if code == "context_length_exceeded" else kind)(
        message,
        status_code=status,
        code=code,
        param=hide(error.param) if error.param else None,
        request_id=error.request_id,
        retry_after=retry_after(error.response.headers),
    )
