"""What a model raises beside the errors of its backend, and what a failed response is raised as."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antiphon.errors import (
    AntiphonError,
    BadRequest,
    ContextLengthExceeded,
    ProviderError,
    RateLimited,
    ServerFailed,
    SourceError,
    StrictError,
)

# code of `response.error` -> what is raised; all others are ServerFailed
CODES: dict[str, type[ProviderError]] = {
    "rate_limit_exceeded": RateLimited,
    "context_length_exceeded": ContextLengthExceeded,
    "invalid_prompt": BadRequest,
}


class EventsBroken(AntiphonError):
    """A native stream breaks the rules of the events; `findings` say which, where and how."""

    def __init__(self, findings: Sequence[Any]) -> None:
        first = "; ".join(str(one) for one in findings[:3])
        more = f"; and {len(findings) - 3} more" if len(findings) > 3 else ""
        super().__init__(f"the stream breaks {len(findings)} rules: {first}{more}")
        self.findings = tuple(findings)


def failure(error: BaseException) -> BaseException:
    """Return what is raised where `error` made a response fail: what was only said in the stream becomes typed too."""
    if not isinstance(error, SourceError) or isinstance(error, StrictError):
        return error
    raised = failure_of_code(error.code, error.message)
    raised.__cause__ = error
    return raised


def failure_of_code(code: str, message: str) -> ProviderError:
    """Return the error for a response that failed with this code and message."""
    return CODES.get(code, ServerFailed)(message, code=code)
