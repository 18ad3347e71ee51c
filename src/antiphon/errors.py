"""The errors of antiphon: one tree under `AntiphonError`.

What a provider does wrong ends as `response.failed`; what a caller or our own code does wrong raises one of these. A
backend raises a `ProviderError` where no answer came, or where it broke off; the handlers make `response.failed` of it.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

Stage: TypeAlias = Literal["connect", "first_byte", "idle", "total"]


class AntiphonError(Exception):
    """The base of all errors that antiphon raises by itself."""


class AgentsException(AntiphonError):
    """The base of all that a run raises. `run_data`, a `RunErrorDetails`, says how far it had come; None without a run."""

    run_data: Any = None  # its class is the runner's, which this module does not know


class UserError(AgentsException):
    """The program that calls antiphon made a mistake; the message says which and how to undo it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class BadInput(UserError):
    """What was given cannot be read; the message says what came, what is allowed and where."""


class NotInstalled(BadInput):
    """Nothing that is installed has that name. `found`: the message without `way`, which is for Python programs alone."""

    def __init__(self, found: str, way: str = "") -> None:
        super().__init__(f"{found}. {way}" if way else found)
        self.found = found


class ProfileNotFound(NotInstalled):
    """No profile has that name; the message lists the names that are known."""


class BackendNotFound(NotInstalled):
    """No backend has that name; the message lists the names that are known."""


class ExtraMissing(AntiphonError):
    """A package that is optional is not installed; `extra` is the extra of antiphon that brings it."""

    def __init__(self, message: str, *, extra: str = "") -> None:
        super().__init__(message)
        self.extra = extra


class SourceError(AntiphonError):
    """The source of chunks failed by what it sent: an error object, a cut stream, a line that is not JSON.

    `code` is the code of `response.error`. An exception that the source itself raised is kept as it was instead.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def __reduce__(self) -> tuple[type[SourceError], tuple[str, str]]:
        return type(self), (self.code, self.message)  # exceptions are pickled by their one argument else


class StrictError(SourceError):
    """Something was seen that only `strict=True` refuses: content that has no place in the Responses stream."""


class ProviderError(AntiphonError):
    """A backend got no answer from the provider, or not to its end. The children say why; none holds a key.

    `status_code`: of the HTTP answer, None if there was none. `code`: what the provider calls it. `param`: the
    parameter it complains of. `request_id`: the provider's number of the request. `retry_after`: seconds that it asks
    to wait. `body`: how its answer begins. `transient`: the same request may succeed later.
    """

    transient: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        status_code: int | None = None,
        code: str | None = None,
        param: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        body: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.code = code
        self.param = param
        self.request_id = request_id
        self.retry_after = retry_after
        self.body = body


class ConnectionFailed(ProviderError):
    """There is no connection to the provider, or it broke."""

    transient = True


class TimedOut(ProviderError):
    """The provider took too long. `stage`: to "connect", to the "first_byte", "idle" between two, in "total"."""

    transient = True

    def __init__(self, message: str, *, stage: Stage = "total") -> None:
        super().__init__(message)
        self.stage: Stage = stage


class BadAnswer(ProviderError):
    """What answers is no chat backend: a web page, a redirection, another content type, text that is not JSON."""


class RateLimited(ProviderError):
    """Too many requests or tokens, or a quota is used up: status 429, or the provider's words for it."""

    transient = True


class AuthenticationFailed(ProviderError):
    """The key is missing, wrong, or may not do this: status 401 or 403."""


class BadRequest(ProviderError):
    """The provider refuses the request: another status of 4xx."""


class ContextLengthExceeded(BadRequest):
    """The request is longer than what the model can read."""


class NotFound(BadRequest):
    """There is no such model, or the base URL is wrong: status 404."""


class ServerFailed(ProviderError):
    """The provider failed: a status of 5xx, or an error that it reports without one."""

    transient = True
