"""What the first answers say of all others: that no probe can be answered by this server, or none is worth asking.

No connection, a key that is refused, a path or a model that there is not are told as errors: nothing was judged. A
server that answers all of the first probes with the same redirection, page or failure is judged by these alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from antiphon.errors import AuthenticationFailed, BadInput, ConnectionFailed, NotFound, ProviderError
from antiphon.near import nearest
from antiphon.stream.faults import redact
from antiphon_conformance.exchange import Api, Exchange
from antiphon_conformance.read import Json, mapping, text

from .answers import payloads_of
from .asking import Server
from .taking import Taken, refusal_said

PATHS: dict[Api, str] = {"chat": "/chat/completions", "responses": "/responses"}
NO_MODEL = "model_not_found"  # the code of OpenAI and of those who do as it does
OTHER_API: dict[Api, str] = {
    "chat": "a server that speaks Responses alone is asked with --api responses",
    "responses": "a server that speaks Chat Completions is asked with --api chat",
}
NO_ACCESS, NO_PATH = (401, 403), (404, 405)
SHOWN = 8  # models that are named


def fatal(results: Sequence[Taken]) -> Exchange | None:
    """Return the first answer, where it says that no request to this URL with this key and model can be answered."""
    tried = [taken for taken in results if taken.first is not None]
    first = tried[0].first if tried else None
    if first is None or not all(_alike(first, taken.first) for taken in tried):
        return None
    return first if first.failure == "connect" or _is_of_all(tried[0], first) else None


def worthless(results: Sequence[Taken], in_a_row: int) -> str:
    """Return what all the first answers are alike, where there are as many as `in_a_row` and they hold nothing that
    tells of a chat server; "" else."""
    kinds = [_worth(taken.first) for taken in results if taken.first is not None]
    return kinds[0] if len(kinds) >= in_a_row and len(set(kinds)) == 1 else ""


def told(first: Exchange, url: str, model: str, has_key: bool, listed: Sequence[str]) -> ProviderError:
    """Return the error for a first answer that is fatal. `listed`: the models that the server says it has."""
    said = redact(refusal_said(first))
    if first.failure == "connect":
        return ConnectionFailed(unreachable(url, first.message))
    if first.status in NO_ACCESS:
        return AuthenticationFailed(no_access(url, has_key, said), status_code=first.status)
    if lacks_model(first, model):
        missing = f"{url} has no model {model!r}, so nothing was judged: {said}{_models(model, listed)}"
        return NotFound(missing, status_code=first.status)
    return NotFound(_no_path(first, url, said), status_code=first.status)


def unreachable(url: str, why: str) -> str:
    """Return the message for a server to which there is no connection."""
    way = "is the server running, and are the host, the port and http or https right?"
    return f"{url} cannot be reached, so nothing was judged: {why}; {way}"


def no_access(url: str, has_key: bool, why: str) -> str:
    """Return the message for a server that refuses the key, or wants one."""
    return f"{url} refuses {'the key that was sent' if has_key else 'requests without a key'}, so nothing was judged: {why}"


def lacks_model(first: Exchange, model: str) -> bool:
    """Return whether a server says that it has no such model, and not that it has no such path."""
    error = _error_in(first)
    is_named = bool(model) and model in text(error.get("message"))
    return first.status == 404 and (is_named or text(error.get("code")) == NO_MODEL)


async def first_model(server: Server, url: str, has_key: bool) -> str:
    """Return the first model that a server lists. Raises ProviderError where it cannot be asked, BadInput where it has none."""
    try:
        models = await server.models()
    except ConnectionFailed as problem:
        raise ConnectionFailed(unreachable(url, str(problem))) from None
    except AuthenticationFailed as problem:
        raise AuthenticationFailed(no_access(url, has_key, str(problem))) from None
    except ProviderError as problem:
        raise type(problem)(
            f"no model is named, and the server cannot be asked for one: {problem}; name one with --model, or look "
            "whether the URL is right"
        ) from None
    if not models:
        raise BadInput("no model is named, and the server lists none: name one with --model")
    return models[0]


async def models_of(server: Server) -> tuple[str, ...]:
    """Return the models that a server lists, none where it cannot say."""
    try:
        return tuple(await server.models())
    except ProviderError:
        return ()


def _error_in(answer: Exchange) -> Json:
    return mapping(mapping(next(iter(payloads_of(answer.body).values), None)).get("error"))


def _alike(first: Exchange, other: Exchange | None) -> bool:
    return other is not None and (other.status, other.failure) == (first.status, first.failure)


def _is_of_all(taken: Taken, first: Exchange) -> bool:
    """Whether the status of an answer is that of all requests, and not of what this probe asks for: something that a
    server may do without, or an error."""
    if first.status not in (*NO_ACCESS, *NO_PATH) or taken.probe.refusal:
        return False
    error = _error_in(first)
    is_general = not error or text(error.get("code")) == NO_MODEL
    return not taken.probe.needs or first.status == 401 or (first.status in NO_PATH and is_general)


def _worth(first: Exchange | None) -> str:
    """Return what an answer is that tells nothing of a chat server, "" where it may."""
    if first is None or first.status is None:
        return ""
    if 300 <= first.status < 400 or first.status == 429 or first.status >= 500:
        return f"status {first.status}"
    return "a web page" if first.answered and first.content_type == "text/html" else ""


def _no_path(first: Exchange, url: str, said: str) -> str:
    root = root_of(url)
    close = "" if "/v" in root else f"; did you mean {root}/v1?"
    return (
        f"nothing takes requests at {root}{PATHS[first.api]}, so nothing was judged: {said}{close}; the URL to give is "
        f"the base of the API, such as http://127.0.0.1:8000/v1, and {OTHER_API[first.api]}"
    ).replace("?; t", "? T")


def _models(model: str, listed: Sequence[str]) -> str:
    if not listed:
        return ""
    close = nearest(model, listed)
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return f"; {f'did you mean {close!r}? It' if close else 'it'} lists {', '.join(listed[:SHOWN])}{more}"


def root_of(url: str) -> str:
    """Return what the paths of requests are added to: as our backend reads a URL, a whole path is cut, and none is `/v1`."""
    base = url.rstrip("/")
    for path in PATHS.values():
        base = base.removesuffix(path)
    return base if "/" in base.partition("://")[2] else f"{base}/v1"
