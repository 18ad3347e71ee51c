"""What the gateway answers instead of a response: an HTTP status, and an error object in OpenAI's shape."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from antiphon.errors import (
    AntiphonError,
    AuthenticationFailed,
    BadAnswer,
    BadInput,
    ConnectionFailed,
    ContextLengthExceeded,
    NotFound,
    ProviderError,
    RateLimited,
    TimedOut,
)
from antiphon.errors import BadRequest as RequestRefused
from antiphon.request import BadRequest
from antiphon.stream.faults import redact

LONGEST_SHOWN = 128  # characters of an id in a message
# status -> `error.type`; others of 4xx are invalid_request_error, all else server_error
TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
# what a backend raises -> the status where it names none, and the code where it names none
FAILURES: tuple[tuple[type[ProviderError], int, str], ...] = (
    (RateLimited, 429, "rate_limit_exceeded"),
    (ContextLengthExceeded, 400, "context_length_exceeded"),
    (NotFound, 404, "model_not_found"),
    (RequestRefused, 400, "invalid_prompt"),
    (AuthenticationFailed, 401, "backend_refused_key"),
    (ConnectionFailed, 502, "backend_unreachable"),
    (TimedOut, 504, "backend_timeout"),
    (BadAnswer, 502, "backend_answer_unreadable"),
    (ProviderError, 502, "server_error"),
)
WRONG_URL = (
    "; the backend has no such model, or its configured URL is not the base of its API, which mostly ends with /v1"
)


class ApiError(AntiphonError):
    """An answer that is an error. `param`: the path of what is wrong in the request, such as `input[3].content`."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """Return the error object. Source: https://platform.openai.com/docs/guides/error-codes, and its recordings."""
        kind = TYPES.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


class Stopped(AntiphonError):
    """An answer was ended from outside; its stream ends as failed, with this reason."""


class StoreUnavailable(AntiphonError):
    """The database cannot be reached, or took too long: `is_late`."""

    def __init__(self, message: str, *, is_late: bool = False) -> None:
        super().__init__(message)
        self.is_late = is_late


class Cancelled(Stopped):
    """Somebody asked to cancel the response."""


class ShuttingDown(Stopped):
    """The gateway is about to end."""


class TookTooLong(Stopped):
    """The response took longer than the configuration allows."""


class TooManyEvents(Stopped):
    """The answer has more events than the configuration allows."""


def invalid(param: str, message: str, code: str = "invalid_value") -> ApiError:
    """Return the error for a request that is wrong at `param`."""
    return ApiError(400, message, param=param, code=code)


def missing(what: str, name: str) -> ApiError:
    """Return the error for something that is not there, or not the caller's: both look the same."""
    shown = repr(name if len(name) <= LONGEST_SHOWN else f"{name[:LONGEST_SHOWN]}…")
    return ApiError(404, f"{what} with id {shown} not found", code="not_found")


def error_of(problem: Exception) -> ApiError | None:
    """Return the answer for what went wrong before a response began; None for a fault of our own."""
    match problem:
        case ApiError():
            return problem
        case BadRequest(param=param):
            return invalid(param, redact(str(problem)))
        case Stopped():
            return ApiError(503, str(problem), code="server_shutting_down", headers={"Retry-After": "1"})
        case StoreUnavailable():
            return ApiError(503, str(problem), code="store_unavailable", headers={"Retry-After": "2"})
        case ProviderError():
            return _failed(problem)
        case BadInput():
            return ApiError(400, redact(str(problem)), code="invalid_value")
        case _:
            return None


def label_of(problem: Exception, error: ApiError) -> str:
    """Return the code by which an error is counted: one of a fixed few, whatever backends call theirs."""
    known = (code for kind, _, code in FAILURES if isinstance(problem, kind))
    return next(known, str(error.code))


def _failed(problem: ProviderError) -> ApiError:
    """Return the answer for a backend that failed: its status where it named one that is an error."""
    usual, code = next((status, code) for kind, status, code in FAILURES if isinstance(problem, kind))
    named = problem.status_code
    status = named if named is not None and 400 <= named < 600 else usual
    # The code that clients act upon is the class's; what the provider calls it stays where the class says nothing.
    fixed = isinstance(problem, RateLimited | ContextLengthExceeded)
    wait = problem.retry_after
    headers = {} if wait is None else {"Retry-After": str(math.ceil(wait))}
    said = code if fixed or not problem.code else problem.code
    hint = WRONG_URL if isinstance(problem, NotFound) and not problem.code else ""
    return ApiError(status, redact(str(problem)) + hint, code=said, param=problem.param, headers=headers)
