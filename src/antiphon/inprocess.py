"""The real OpenAI client over any backend, inside the process: no server, no port.

client(backend=...) -> openai.AsyncOpenAI -> the gateway's app -> the backend
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from antiphon.backend import Backend
from antiphon.profile import Profile

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI
    from starlette.applications import Starlette

    from antiphon.gateway import GatewayConfig

BASE_URL = "http://antiphon.invalid/v1"  # no request leaves the process
_UNUSED_KEY = "in-process"


def client(
    backend: str | Backend = "replay",
    *,
    profile: str | Profile | None = None,
    config: GatewayConfig | Mapping[str, Any] | None = None,
    **options: Any,
) -> AsyncOpenAI:
    """Return an `openai.AsyncOpenAI` whose requests are answered by the gateway inside this process.

    `backend`: a URL, the name of an installed kind ("replay", "litellm", …), or a `Backend`. `profile`: what is odd
    about it. `config`: the gateway's configuration instead of all these; further `options` are settings of the backend
    (`api_key`, `headers`, …). Stored responses end with the client. It belongs to the event loop that first used it,
    and `await client.close()` closes it. Raises BadInput for settings that are wrong, ExtraMissing without the extra
    `gateway`.
    """
    app = _app(backend, profile, config, options)
    import httpx2
    from openai import AsyncOpenAI

    from antiphon.gateway.transport import AppTransport

    http = httpx2.AsyncClient(transport=AppTransport(app), timeout=None, trust_env=False)
    return AsyncOpenAI(api_key=_UNUSED_KEY, base_url=BASE_URL, http_client=http, max_retries=0)


def sync_client(
    backend: str | Backend = "replay",
    *,
    profile: str | Profile | None = None,
    config: GatewayConfig | Mapping[str, Any] | None = None,
    **options: Any,
) -> OpenAI:
    """Return an `openai.OpenAI` in the same way. The gateway runs in a thread, until `client.close()`."""
    app = _app(backend, profile, config, options)
    import httpx2
    from openai import OpenAI

    from antiphon.gateway.transport import SyncAppTransport

    http = httpx2.Client(transport=SyncAppTransport(app), timeout=None, trust_env=False)
    return OpenAI(api_key=_UNUSED_KEY, base_url=BASE_URL, http_client=http, max_retries=0)


def _app(
    backend: str | Backend,
    profile: str | Profile | None,
    config: GatewayConfig | Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> Starlette:
    from antiphon.gateway import create_app  # it says which extra is missing

    if config is not None:
        return create_app(config)
    if isinstance(backend, str):
        return create_app({"backends": {"backend": _settings(backend, options)}}, profiles=_profiles(profile))
    return create_app(
        {"backends": {"backend": dict(options)}}, backends={"backend": backend}, profiles=_profiles(profile)
    )


def _settings(backend: str, options: Mapping[str, Any]) -> dict[str, Any]:
    is_url = "://" in backend
    return {"kind": "http", "url": backend, **options} if is_url else {"kind": backend, **options}


def _profiles(profile: str | Profile | None) -> dict[str, str | Profile]:
    return {} if profile is None else {"backend": profile}
