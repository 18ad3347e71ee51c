"""Errors of the OpenAI SDK as ours: by their status, without keys."""

from __future__ import annotations

from collections.abc import Mapping

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

# status -> what is raised; others by their first digit
STATUSES: dict[int, type[ProviderError]] = {
    401: AuthenticationFailed,
    403: AuthenticationFailed,
    404: NotFound,
    408: ServerFailed,
    429: RateLimited,
}


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
        retry_after=seconds(error.response.headers),
    )


def seconds(headers: Mapping[str, str]) -> float | None:
    """Return how long the server asks to wait; None where it does not say, or says it as a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
    return None
