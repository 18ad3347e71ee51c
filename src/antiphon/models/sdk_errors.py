"""Errors of the OpenAI SDK as ours: by their status, without keys."""

from __future__ import annotations

import openai

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
from antiphon.stream.faults import redact

from .waits import retry_after

# status -> what is raised; others by their first digit
STATUSES: dict[int, type[ProviderError]] = {
    401: AuthenticationFailed,
    403: AuthenticationFailed,
    404: NotFound,
    408: ServerFailed,
    429: RateLimited,
}


SHORTEST = 6  # characters of a key; what is shorter is a placeholder


def without(error: BaseException, key: str | None) -> BaseException:
    """Return the error, which says the key no more; `redact` knows keys by their look alone."""
    if key is None or len(key) < SHORTEST:
        return error
    error.args = tuple(one.replace(key, "***") if isinstance(one, str) else one for one in error.args)
    if isinstance(error, ProviderError) and error.body:
        error.body = error.body.replace(key, "***")
    return error


def typed(error: openai.OpenAIError) -> ProviderError:
    """Return an error of the SDK as one of ours."""
    message = redact(str(error)) or type(error).__name__
    if isinstance(error, openai.APITimeoutError):
        return TimedOut(message)
    if isinstance(error, openai.APIConnectionError):
        return ConnectionFailed(message)
    code = error.code if isinstance(error, openai.APIError) else None
    if not isinstance(error, openai.APIStatusError):
        return ServerFailed(message, code=code)
    status = error.status_code
    kind = STATUSES.get(status, BadRequest if status < 500 else ServerFailed)
    return (ContextLengthExceeded if code == "context_length_exceeded" else kind)(
        message,
        status_code=status,
        code=code,
        param=error.param,
        request_id=error.request_id,
        retry_after=retry_after(error.response.headers),
    )
