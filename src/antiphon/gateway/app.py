"""`create_app`: the gateway as an ASGI app, which runs by itself or inside another one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from antiphon.backend import Backend
from antiphon.profile import Profile

from .compaction import Compaction
from .config import GatewayConfig, make_config
from .conversations import Conversations
from .counting import Counting
from .gateway import Gateway
from .hosts import Hosts
from .openapi import document
from .routes import Routes
from .serving import Act, JsonResponse, not_served, served

PREFIXES = ("/v1", "")  # clients are told a base URL with or without the version


def create_app(
    config: GatewayConfig | Mapping[str, Any] | None = None,
    *,
    backends: Mapping[str, Backend] | None = None,
    profiles: Mapping[str, str | Profile] | None = None,
) -> Starlette:
    """Return the gateway as an ASGI app; its `state.gateway` is the `Gateway`.

    `config`: a `GatewayConfig`, or a mapping of its settings; without it the embedded replay backend is served.
    `backends`, `profiles`: by the backend's name, instead of those that the configuration would make or name. It may be mounted in another app:
    what it needs is opened by the first request. Raises BadInput for settings that are wrong.
    """
    gateway = Gateway(make_config(config), backends, profiles)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        try:
            yield
        finally:  # also where the server ends at once, and cancels what it has not told
            await gateway.aclose()

    names = tuple(name.lower() for name in gateway.config.hosts)
    middleware = [Middleware(Slashes)] if "*" in names else [Middleware(Hosts, names=names), Middleware(Slashes)]
    app = Starlette(
        routes=list(_routes(gateway)),
        middleware=middleware,
        exception_handlers={HTTPException: not_served},
        lifespan=lifespan,
    )
    app.state.gateway = gateway
    app.router.redirect_slashes = False
    return app


class Slashes:
    """ASGI middleware: a path with a slash at its end is the one without. A client would be told another scheme by a
    redirect where something in front of the gateway ends TLS, and would send its key there, or fail."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path: str = scope["path"]
            place = len(scope.get("root_path", ""))
            if path.endswith("/") and len(path) > place + 1:
                scope = {**scope, "path": path.rstrip("/") if len(path.rstrip("/")) > place else path[: place + 1]}
        await self._app(scope, receive, send)


def _routes(gateway: Gateway) -> list[Route]:
    routes, conversations = Routes(gateway), Conversations(gateway)
    counting, compaction = Counting(gateway), Compaction(gateway)
    one, item = "/conversations/{conversation_id}", "/conversations/{conversation_id}/items/{item_id}"
    keyed: list[tuple[str, str, str, Act]] = [
        ("POST", "/responses", "create", routes.create),
        ("GET", "/responses/{response_id}", "retrieve", routes.retrieve),
        ("DELETE", "/responses/{response_id}", "delete", routes.delete),
        ("POST", "/responses/input_tokens", "input_tokens", counting.create),
        ("POST", "/responses/compact", "compact", compaction.create),
        ("POST", "/responses/{name}", "unknown", routes.unknown),
        ("POST", "/responses/{response_id}/cancel", "cancel", routes.cancel),
        ("GET", "/responses/{response_id}/input_items", "input_items", routes.input_items),
        ("POST", "/chat/completions", "chat", routes.chat),
        ("GET", "/models", "models", routes.models),
        ("GET", "/models/{model:path}", "model", routes.model),
        ("POST", "/conversations", "conversation_create", conversations.create),
        ("GET", one, "conversation_retrieve", conversations.retrieve),
        ("POST", one, "conversation_change", conversations.change),
        ("DELETE", one, "conversation_delete", conversations.delete),
        ("GET", f"{one}/items", "conversation_items", conversations.items),
        ("POST", f"{one}/items", "conversation_extend", conversations.extend),
        ("GET", item, "conversation_item", conversations.item),
        ("DELETE", item, "conversation_delete_item", conversations.delete_item),
    ]
    made = [
        Route(prefix + path, served(gateway, name, act), methods=[method])
        for prefix in PREFIXES
        for method, path, name, act in keyed
    ]
    made.append(Route("/metrics", served(gateway, "metrics", routes.metrics), methods=["GET"]))
    for path, act in (("/healthz", routes.health), ("/readyz", routes.ready)):
        made.append(Route(path, served(gateway, path[1:], act, open_to_all=True), methods=["GET"]))
    if gateway.page is not None:
        for path, act in (("/", gateway.page.whole), ("/streams", gateway.page.streams)):
            made.append(Route(path, served(gateway, "page", act, by_browser=True), methods=["GET"]))
    made.append(Route("/openapi.json", _openapi, methods=["GET"]))
    return made


async def _openapi(request: Any) -> JsonResponse:
    return JsonResponse(document())
