"""What the OpenAI SDK raises as errors of ours: by their status, without keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2
import openai

from antiphon.concealing import Hide
from antiphon.errors import (
    AntiphonError,
    AuthenticationFailed,
    BadAnswer,
    BadRequest,
    ConnectionFailed,
    ContextLengthExceeded,
    NotFound,
    ProviderError,
    RateLimited,
    ServerFailed,
    TimedOut,
)
from antiphon.stream.faults import fault_of
from antiphon.stream.native.read import fault_in

from .failed import failure_of_code
from .waits import retry_after

# what the SDK raises: its own errors, and of a stream that has begun those of its HTTP client and of its JSON reader
RAISED = (
    *(AntiphonError, openai.OpenAIError, httpx2.HTTPError, httpx2.StreamError),
    *(OSError, ValueError, RecursionError),
)
UNREADABLE = (httpx2.DecodingError, httpx2.TooManyRedirects)  # which asking again does not mend
EXCERPT = 300  # characters of a body that an error tells of
# status -> what is raised; others by their first digit
STATUSES: dict[int, type[ProviderError]] = {
    401: AuthenticationFailed,
    403: AuthenticationFailed,
    404: NotFound,
    408: ServerFailed,
    429: RateLimited,
}


def typed(error: Exception, hide: Hide) -> AntiphonError:
    """Return what the SDK raised as one of ours."""
    if isinstance(error, AntiphonError):
        error.args = tuple(hide.known(one) if isinstance(one, str) else one for one in error.args)
        return error
    if isinstance(error, openai.OpenAIError):
        return _of_sdk(error, hide)
    said = _words(error, hide)
    if isinstance(error, httpx2.TimeoutException):
        return TimedOut(f"the stream was silent too long ({said})", stage="idle")
    if isinstance(error, (ValueError, RecursionError, *UNREADABLE)):
        return BadAnswer(f"the server sent what cannot be read: {said}")
    return ConnectionFailed(f"the connection to the server failed: {said}")


def reported(held: Mapping[str, Any], hide: Hide) -> ProviderError:
    """Return the error that an `error` event, or a failed response, tells of."""
    fault = fault_in(dict(held))
    return failure_of_code(hide(fault.code), hide(fault.message))


def _words(error: BaseException, hide: Hide) -> str:
    return f"{type(error).__name__}: {hide(str(error))}".removesuffix(": ")


def _of_sdk(error: openai.OpenAIError, hide: Hide) -> ProviderError:
    message = hide(str(error)) or type(error).__name__
    if isinstance(error, openai.APITimeoutError):
        return TimedOut(message)
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__  # of which the SDK says "Connection error.", whatever it is
        said = _words(cause, hide) if cause else message
        if isinstance(cause, UNREADABLE):
            return BadAnswer(f"the server sent what cannot be read: {said}")
        return ConnectionFailed(f"the connection to the server failed: {said}")
    if not isinstance(error, openai.APIError):
        return ServerFailed(message)
    if not isinstance(error, openai.APIStatusError):
        return reported({"error": error.body}, hide)
    status, fault = error.status_code, fault_of(error.body)
    if error.body and message == f"Error code: {status}":  # which is all that the SDK says of a body in another form
        message = f"{message} - {hide(fault.message)[:EXCERPT]}"
    kind = STATUSES.get(status, BadRequest if status < 500 else ServerFailed)
    code, param = (hide(str(one)) if one not in (None, "") else None for one in (error.code, error.param))
    return (ContextLengthExceeded if fault.code == "context_length_exceeded" else kind)(
        message,
        status_code=status,
        code=code,
        param=param,
        request_id=error.request_id,
        retry_after=retry_after(error.response.headers),
    )
