"""What a failed response is raised as."""

from __future__ import annotations

from typing import Any

from antiphon import errors
from antiphon.stream.chunk import fields

# code of `response.error` -> what is raised; all others are ServerFailed
CODES: dict[str, type[errors.ProviderError]] = {
    "rate_limit_exceeded": errors.RateLimited,
    "context_length_exceeded": errors.ContextLengthExceeded,
    "invalid_prompt": errors.BadRequest,
}


def failure(error: BaseException) -> BaseException:
    """Return what is raised where `error` made a response fail: what was only said in the stream becomes typed too."""
    if not isinstance(error, errors.SourceError) or isinstance(error, errors.StrictError):
        return error
    raised = failure_of_code(error.code, error.message)
    raised.__cause__ = error
    return raised


def failure_of_code(code: str, message: str) -> errors.ProviderError:
    """Return the error for a response that failed with this code and message."""
    return CODES.get(code, errors.ServerFailed)(message, code=code)


def failure_in(response: Any) -> errors.ProviderError:
    """Return the error that a failed response, in any style, says."""
    error = fields(fields(response).get("error"))
    return failure_of_code(str(error.get("code") or "server_error"), str(error.get("message") or "no message"))
