"""What goes wrong at a provider as one of antiphon's errors: from an HTTP answer, or from what an SDK raises.

No key is in what comes out: those that the backend knows are cut out as they are, others by their look. The errors are
raised outside the `except` block of what caused them, so that no chain of contexts leads to a request with its headers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from antiphon.backend.failed import failure_of_code
from antiphon.backend.waits import retry_after
from antiphon.errors import (
    AuthenticationFailed,
    BadAnswer,
    BadRequest,
    ConnectionFailed,
    ContextLengthExceeded,
    NotFound,
    ProviderError,
    RateLimited,
    ServerFailed,
    Stage,
)
from antiphon.stream.chunk import fields, is_object, plain, whole_number
from antiphon.stream.faults import STATUS, error_in, fault_of

from .concealing import Hide
from .pace import timed_out

EXCERPT = 500  # characters of a body that an error keeps
_MANY, _DEEP = 20, 8  # entries of a list, and levels, that are looked at
_REQUEST_IDS = ("x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "x-generation-id")
_TITLE = re.compile(rb"<title[^>]*>\s*(.*?)\s*</title>", re.IGNORECASE | re.DOTALL)

# status -> the error; 401 and 403 are AuthenticationFailed, others of 4xx BadRequest, all else ServerFailed
_BY_STATUS: dict[int, type[ProviderError]] = {404: NotFound, 408: ServerFailed, 429: RateLimited}
# the code that the words of an error give -> the error
_BY_CODE: dict[str, type[ProviderError]] = {
    "rate_limit_exceeded": RateLimited,
    "context_length_exceeded": ContextLengthExceeded,
}

# Names along the classes of an exception, in httpx, aiohttp, openai, and in what is built on them.
_WRAPPERS = ("litellm", "any_llm")
_TIMEOUTS = frozenset({"TimeoutException", "TimeoutError", "APITimeoutError"})
_CONNECT_TIMEOUTS = frozenset({"ConnectTimeout", "PoolTimeout", "ConnectionTimeoutError"})
_CONNECTIONS = frozenset({"TransportError", "ConnectionError", "APIConnectionError", "ClientConnectionError"})
# The OpenAI SDK takes what cannot be decompressed, and too many redirections, for a broken connection.
_UNREADABLE = frozenset({"DecodingError", "TooManyRedirects"})
_MISREAD = frozenset({"JSONDecodeError", "UnicodeDecodeError", "APIResponseValidationError"})
# what an SDK's own class says, also where nothing was sent
_BY_NAME: dict[str, type[ProviderError]] = {
    "MissingApiKeyError": AuthenticationFailed,
    "UnsupportedParameterError": BadRequest,
    "ContextWindowExceededError": ContextLengthExceeded,
}


def failure_of_answer(status: int, headers: Mapping[str, str], body: Any, hide: Hide) -> ProviderError:
    """Return the error for an answer that is none: its status, and what its body says. `body`: bytes, or what is in them."""
    if not isinstance(body, bytes):
        return _failure(status, headers, body, hide, _text(body))
    return _failure(status, headers, _said(body), hide, body.decode("utf-8", "replace"))


def failure_of_fault(code: str, message: str, hide: Hide) -> ProviderError:
    """Return the error for a stream that said what went wrong. `code`: that of `response.error`."""
    return failure_of_code(code, hide(message))


def reports_error(answer: Mapping[str, Any]) -> bool:
    """Return whether an object that should be a chat answer says instead what went wrong, in any of the usual forms."""
    said = {key: value for key, value in answer.items() if value not in (None, [])}
    return "choices" not in said and error_in(said, {}) is not None


def failure_of_page(status: int, headers: Mapping[str, str], body: bytes, hide: Hide, came: str) -> BadAnswer:
    """Return the error for a good status with a body that is no chat answer. `came` is its content type."""
    text = body.decode("utf-8", "replace").strip()
    said = _page(body) if is_page(body) else repr(hide(text)[:60]) if text else "an empty body"
    message = f"the provider answered {status} with {said} ({came}), and no chat answer: is the base URL right?"
    return BadAnswer(hide(message), status_code=status, request_id=request_id_in(headers), body=hide(text)[:EXCERPT])


def failure_of_error(
    error: BaseException, hide: Hide, stage: Stage = "first_byte", outer: BaseException | None = None
) -> ProviderError:
    """Return the error for what an SDK or the HTTP client raised.

    `stage`: what was waited for. `outer`: the exception that the caller was handling before, which explains nothing.
    """
    if isinstance(error, ProviderError):
        return error
    chain = _chain(error, outer)
    names = {kind.__name__ for one in chain for kind in type(one).__mro__}
    if names & _TIMEOUTS:
        return timed_out("connect" if names & _CONNECT_TIMEOUTS else stage, None)
    if names & _CONNECTIONS and not names & _UNREADABLE:
        return ConnectionFailed(f"the connection to the provider failed: {hide(_words(chain[-1]))[:EXCERPT]}")
    if names & (_UNREADABLE | _MISREAD):
        return BadAnswer(f"the provider sent what cannot be read: {hide(_words(chain[-1]))[:EXCERPT]}")
    body = next((found for one in chain if (found := _body_of(one)) is not None), None)
    said = _told(chain) if body is None else _said(body.encode()) if isinstance(body, str) else body
    kind = next((kind for name, kind in _BY_NAME.items() if name in names), None)
    return _failure(_status_of(chain), _headers_of(chain), said, hide, _text(body), kind)


# --- an answer -----------------------------------------------------------------------------------------------------


def _failure(
    status: int | None,
    headers: Mapping[str, str],
    said: Any,
    hide: Hide,
    text: str,
    kind: type[ProviderError] | None = None,
) -> ProviderError:
    hidden = _hidden(said, hide)
    error = _error_in(hidden[:EXCERPT] if isinstance(hidden, str) else hidden)
    fault = fault_of(error)
    held = fields(error)
    code = next((str(held[key]) for key in ("code", "type") if held.get(key) not in (None, "")), None)
    begun = "the provider reported an error" if status is None else f"the provider answered {status}"
    told = status if status is None or status >= 400 else None
    return (kind or _kind(told or _status_in(held), fault.code))(
        f"{begun}: {fault.message}",
        status_code=status,
        code=code,
        param=held["param"] if isinstance(held.get("param"), str) else None,
        request_id=request_id_in(headers),
        retry_after=retry_after(headers),
        body=hide(text)[:EXCERPT] or None,
    )


def _kind(status: int | None, code: str) -> type[ProviderError]:
    if status in (401, 403):  # also where the words are about quota
        return AuthenticationFailed
    if kind := _BY_CODE.get(code) or _BY_STATUS.get(status or 0):
        return kind
    return BadRequest if status is not None and 400 <= status < 500 else ServerFailed


def _status_in(error: Mapping[str, Any]) -> int | None:
    """Return the status that an error object has inside: some servers answer 200, or fail in the middle of a stream."""
    numbers = (whole_number(error.get(key)) for key in STATUS)
    return next((one for one in numbers if one is not None and 400 <= one < 600), None)


def _text(body: Any) -> str:
    if body is None or isinstance(body, str):
        return body or ""
    return json.dumps(plain(body))


def _said(body: bytes) -> Any:
    """Return what a body says: JSON as it is, the title of a page, or the text."""
    if not body.strip():
        return "nothing, the body is empty"
    if is_page(body):
        return _page(body)
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace").strip()


def _error_in(said: Any) -> Any:
    """Return the error object or text: of the OpenAI shape, of FastAPI's `detail`, or the first of a list."""
    if isinstance(said, list):
        return _error_in(said[0]) if said else "an empty list"  # pyright: ignore[reportUnknownArgumentType]
    if not isinstance(said, dict):
        return said
    held: dict[str, Any] = said  # pyright: ignore[reportUnknownVariableType]
    if held.get("error"):
        return held["error"]
    errors = held.get("errors")  # of Cloudflare's API
    if isinstance(errors, list) and errors:
        return errors[0]  # pyright: ignore[reportUnknownVariableType]
    detail = held.get("detail")
    if isinstance(detail, list):
        return {"message": "; ".join(_complaint(one) for one in detail)}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return detail if isinstance(detail, dict) else held  # pyright: ignore[reportUnknownVariableType]


def _hidden(said: Any, hide: Hide, depth: int = 0) -> Any:
    """Return JSON data with all its texts short and without keys, and nothing that is nested deep."""
    match said:
        case str():
            return hide(said)
        case _ if depth > _DEEP:
            return None
        case list():
            return [_hidden(one, hide, depth + 1) for one in said[:_MANY]]  # pyright: ignore[reportUnknownVariableType]
        case _ if is_object(said):
            return {key: _hidden(one, hide, depth + 1) for key, one in fields(said).items()}
        case _:
            return said


def _complaint(one: Any) -> str:
    """Return one entry of FastAPI's validation errors in words."""
    if not isinstance(one, dict):
        return str(one)
    held: dict[str, Any] = one  # pyright: ignore[reportUnknownVariableType]
    place = ".".join(str(step) for step in held.get("loc") or ())
    return f"{held.get('msg', held)}{f' ({place})' if place else ''}"


def is_page(body: bytes) -> bool:
    """Return whether a body is HTML, or XML."""
    return body.lstrip()[:1] == b"<"


def _page(body: bytes) -> str:
    title = _TITLE.search(body)
    named = title.group(1).decode("utf-8", "replace") if title else ""
    return f'a web page, "{named}"' if named else "a web page"


def request_id_in(headers: Mapping[str, str]) -> str | None:
    """Return the provider's number of a request, from the headers of its answer, whose names are in lower case."""
    return next((headers[name] for name in _REQUEST_IDS if headers.get(name)), None)


# --- an exception --------------------------------------------------------------------------------------------------


def _chain(error: BaseException, outer: BaseException | None) -> list[BaseException]:
    """Return `error` and its causes, down to the first; without the wrappers of LiteLLM and any-llm where more is known.

    LiteLLM wraps whatever it does not know into its `APIConnectionError`, and gives it a status that nobody sent.
    """
    chain: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one is not outer and one not in chain:
        chain.append(one)
        one = _cause(one)
    known = [one for one in chain if not isinstance(one, StopAsyncIteration | StopIteration) and not _is_mute(one)]
    told = [one for one in known if type(one).__name__ in _BY_NAME or not type(one).__module__.startswith(_WRAPPERS)]
    known = told or known
    return known or chain


def _cause(error: BaseException) -> BaseException | None:
    """Return what an exception was raised for. httpcore raises its own again `from None`, anyio means it."""
    original = getattr(error, "original_exception", None)  # any-llm and LiteLLM keep the SDK's error there
    if isinstance(original, BaseException):
        return original
    ends = error.__suppress_context__ and type(error).__module__.startswith("anyio")
    return error.__cause__ or (None if ends else error.__context__)


def _is_mute(error: BaseException) -> bool:
    """Return whether an exception says nothing at all, not even by its class: LiteLLM raises such ones."""
    return type(error) is Exception and not str(error).strip()


def _told(chain: list[BaseException]) -> Any:
    """Return what an SDK says in words alone: as an error object where it names a code, which LiteLLM calls a status."""
    wrapped = type(chain[0]).__module__.startswith(_WRAPPERS)
    words = _words(chain[-1] if wrapped else chain[0])
    codes = (getattr(one, "status_code", None) for one in chain)
    code = next((one for one in codes if isinstance(one, str) and one), None)
    return words if code is None else {"message": words, "code": code}


def _words(error: BaseException) -> str:
    said = str(error).strip()
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _status_of(chain: list[BaseException]) -> int | None:
    found = (getattr(one, "status_code", None) for one in chain)
    return next((one for one in found if isinstance(one, int) and not isinstance(one, bool)), None)


def _body_of(error: BaseException) -> Any:
    """Return what the body of the answer says, as the SDK reads it; the text where it finds no error in it."""
    return getattr(error, "body", None) or _sent(getattr(error, "response", None))


def _sent(response: Any) -> str | None:
    status = getattr(response, "status_code", None)
    if not isinstance(status, int) or status < 400:
        return None
    try:
        text = response.text
    except (AttributeError, RuntimeError, UnicodeError):  # it was not read, or is no answer
        return None
    return text if isinstance(text, str) and text.strip() else None


def _headers_of(chain: list[BaseException]) -> Mapping[str, str]:
    for one in chain:
        headers = getattr(getattr(one, "response", None), "headers", None)
        if isinstance(headers, Mapping):
            return {str(name).lower(): str(value) for name, value in headers.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return {}
