"""Chat chunks over plain HTTP, as the bytes of the SSE body: the fast path. One pool of connections for all requests."""

from __future__ import annotations

import base64
import logging
import ssl
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from antiphon import __version__
from antiphon.backend import Answered, Form, Pieces, Timeout, Timeouts
from antiphon.backend.kept import KeptConnections
from antiphon.backend.per_loop import PerLoop
from antiphon.errors import BadInput, ProviderError

from .answer import CLIENT_ERRORS, Answer
from .concealing import Concealer, Hide, secret_values
from .failures import failure_of_error
from .pace import Pace, settled, timed_out
from .shared import key_of, without_credentials

ENDPOINT = "/chat/completions"


class HttpBackend:
    """An OpenAI-compatible server, reached by `base_url`: with or without `/v1`, or the whole endpoint.

    A base URL without a path means `/v1`; one with a path is kept. `api_key`, or the environment variable that
    `api_key_env` names, goes out as a bearer token; other ways go in `headers` or `query`. `body`: keys that each
    request has unless it has them itself. `proxy`: a URL; without it the environment's (`HTTPS_PROXY`, `NO_PROXY`), if
    `trust_env`. `verify`: False, a file or folder of certificates, or a context. `client`: one's own, never closed
    here.

    It may be used in several event loops: each gets its own connections. Raises BadInput for settings that are none.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        api_key_env: str | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        timeout: Timeout | None = None,
        proxy: str | None = None,
        verify: bool | str | ssl.SSLContext = True,
        trust_env: bool = True,
        max_connections: int | None = 1000,
        max_idle_connections: int | None = 100,
        client: httpx2.AsyncClient | None = None,
    ) -> None:
        url = _checked(base_url)
        key = key_of(api_key, api_key_env)
        self._root = _root(url)
        self._query = {**dict(url.params), **(query or {})}
        self._headers = httpx2.Headers({"User-Agent": f"antiphon/{__version__}", **_credentials(url, key)})
        self._headers.update(headers)
        self._body = dict(body or {})
        self._timeouts = settled(Timeouts(), timeout)
        secrets = (key, url.password, httpx2.URL(proxy or "").password)
        self._secrets = (*secrets, *secret_values(self._headers), *secret_values(self._query))
        self._limits = httpx2.Limits(max_connections=max_connections, max_keepalive_connections=max_idle_connections)
        self._proxy, self._verify, self._trust_env = proxy, _certificates(verify), trust_env
        self._given = client
        self._clients = PerLoop(self._connect, KeptConnections.aclose)
        if self._query:
            logging.getLogger("httpx2").addFilter(_without_query)

    def __repr__(self) -> str:
        return f"HttpBackend({self._root!r})"

    @property
    def form(self) -> Form:
        """Pieces of an SSE body."""
        return "sse"

    def stream(
        self,
        body: Mapping[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
        timeout: Timeout | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Pieces:
        """Return the pieces of the SSE body as they come from the network.

        What a server sends that does not stream is read whole; its completion comes as one message.
        """
        head: list[str | None] = []
        pieces = self._pieces({**body, "stream": True}, headers, timeout, query, head)
        return Pieces(pieces, lambda: head[0] if head else None)

    async def complete(
        self,
        body: Mapping[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
        timeout: Timeout | None = None,  # noqa: ASYNC109
        query: Mapping[str, Any] | None = None,
    ) -> Answered:
        """Return the whole completion. One that comes as a stream all the same is put together."""
        asked = {key: value for key, value in body.items() if key != "stream_options"}
        async with self._answer("POST", ENDPOINT, {**asked, "stream": False}, headers, timeout, query) as answer:
            return Answered(await answer.completion(), answer.request_id)

    async def models(self) -> list[dict[str, Any]]:
        """Return the model objects that the server lists."""
        async with self._answer("GET", "/models", None, None, None) as answer:
            return await answer.models()

    async def ask(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
        timeout: Timeout | None = None,  # noqa: ASYNC109
    ) -> dict[str, Any]:
        """Return the JSON object that the server answers at another path, such as `/tokenize`: beside `/v1`, not below."""
        asked = {**body, "stream": False}
        async with self._answer("POST", path, asked, headers, timeout, root=self._root.removesuffix("/v1")) as answer:
            return await answer.json_object()

    async def aclose(self) -> None:
        """Close the connections of the event loop that runs, also those in use."""
        await self._clients.close()

    # --- inside ------------------------------------------------------------------------------------------------

    async def _pieces(
        self,
        body: Mapping[str, Any],
        headers: Mapping[str, str] | None,
        timeout: Timeout | None,  # noqa: ASYNC109
        query: Mapping[str, Any] | None,
        head: list[str | None],
    ) -> AsyncGenerator[bytes, None]:
        concealer = Concealer(self._hiding(headers, query).secrets)
        async with self._answer("POST", ENDPOINT, body, headers, timeout, query) as answer:
            head.append(answer.request_id)
            piece = await answer.first_events()
            while piece is not None:
                if piece := concealer.feed(piece):
                    yield piece
                piece = await answer.piece()
            if piece := concealer.finish():
                yield piece

    def _hiding(self, headers: Mapping[str, str] | None, query: Mapping[str, Any] | None) -> Hide:
        return Hide((*self._secrets, *secret_values(headers), *secret_values(query)))

    def _answer(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None,
        timeout: Timeout | None,
        query: Mapping[str, Any] | None = None,
        root: str | None = None,
    ) -> Answer:
        """Return the answer to a request that is sent when the answer is entered."""
        times = settled(self._timeouts, timeout)
        client = self._given or self._clients.get()
        named = httpx2.Headers(self._headers)
        if body is not None:
            named.update(_wanted(body))
        named.update(headers)
        request = client.build_request(
            method,
            (self._root if root is None else root) + path,
            content=None if body is None else _encoded({**self._body, **body}),
            headers=named,
            params={**self._query, **(query or {})} or None,
            timeout=httpx2.Timeout(None, connect=times.connect, pool=times.connect),
        )
        pace, hide = Pace(times), self._hiding(headers, query)

        async def send() -> httpx2.Response:
            outer = sys.exception()
            failure: ProviderError
            try:
                return await pace.first(client.send(request, stream=True))
            except (httpx2.ConnectTimeout, httpx2.PoolTimeout):
                failure = timed_out("connect", times.connect)
            except CLIENT_ERRORS as error:
                failure = failure_of_error(error, hide, "first_byte", outer)
            raise failure

        return Answer(send, pace, hide)

    def _connect(self) -> KeptConnections:
        return KeptConnections(
            verify=self._verify,
            proxy=self._proxy,
            trust_env=self._trust_env,
            limits=self._limits,
            follow_redirects=False,
        )


def _checked(base_url: str) -> httpx2.URL:
    try:
        url = httpx2.URL(base_url)
    except (httpx2.InvalidURL, TypeError):
        raise BadInput("base_url cannot be read as a URL") from None  # the reason may quote a password
    if url.scheme not in ("http", "https") or not url.host:
        shown = without_credentials(base_url)
        raise BadInput(f"base_url is {shown!r}: it must begin with http:// or https:// and name a host")
    return url


def _root(url: httpx2.URL) -> str:
    """Return the URL that `/chat/completions` and `/models` are added to, without credentials."""
    path = url.path.rstrip("/")
    whole = path.endswith(ENDPOINT)
    path = path.removesuffix(ENDPOINT) if whole else path or "/v1"
    return str(url.copy_with(path=path or "/", username=None, password=None, query=None, fragment=None)).rstrip("/")


def _credentials(url: httpx2.URL, key: str | None) -> dict[str, str]:
    if key is not None:
        return {"Authorization": f"Bearer {key}"}
    if url.username or url.password:
        pair = base64.b64encode(f"{url.username}:{url.password}".encode()).decode()
        return {"Authorization": f"Basic {pair}"}
    return {}


def _wanted(body: Mapping[str, Any]) -> dict[str, str]:
    """Return what the request says about bodies. Compressed streams are not asked for: servers hold them back."""
    wanted = {"Content-Type": "application/json", "Accept": "application/json"}
    streams = {"Accept": "text/event-stream, application/json", "Accept-Encoding": "identity"}
    return {**wanted, **streams} if body["stream"] else wanted


def _encoded(body: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError) as problem:
        raise BadInput(f"the request is no JSON: {problem}") from None


def _certificates(verify: bool | str | ssl.SSLContext) -> bool | ssl.SSLContext:
    if not isinstance(verify, str):
        return verify
    if not Path(verify).exists():
        raise BadInput(f"verify is {verify!r}: there is no such file or folder of certificates")
    folder = Path(verify).is_dir()
    return ssl.create_default_context(capath=verify) if folder else ssl.create_default_context(cafile=verify)


def _without_query(record: logging.LogRecord) -> bool:
    """Take queries off the URLs that the client logs: some providers want their key there."""
    if isinstance(record.args, tuple):
        record.args = tuple(arg.copy_with(query=None) if isinstance(arg, httpx2.URL) else arg for arg in record.args)
    return True
