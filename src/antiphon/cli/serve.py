"""`antiphon serve`: the gateway, `/v1/responses` over any chat backend."""

from __future__ import annotations

import errno
import json
import os
import re
import socket
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from antiphon.backend import takes_option
from antiphon.errors import BadInput, ExtraMissing
from antiphon.profile import load_profile
from antiphon.stream.faults import redact
from antiphon.variable import key_in

if TYPE_CHECKING:
    from antiphon.gateway import GatewayConfig

SECTION_BACKEND, SECTION_SAFETY = "The backend", "Safety"
CANNOT_LISTEN = 1  # not 2, which is for what stays wrong however often it is tried
_FREE = "; --port 0 takes a free one"
# why nothing can listen -> the way out
WAYS = {
    errno.EADDRINUSE: f"; end what listens there, or give another --port{_FREE}",
    errno.EACCES: f"; ports below 1024 are for the system: give another --port{_FREE}",
    errno.EADDRNOTAVAIL: "; it is no address of this machine: 127.0.0.1 is for this machine alone, 0.0.0.0 for all",
}


def serve(
    backend: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]URL|KIND",
            help="A chat backend: its URL, or an installed kind. Several need names. Without it: the replay backend.",
            rich_help_panel=SECTION_BACKEND,
        ),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="What is odd about the backend: vllm, ollama, …", rich_help_panel=SECTION_BACKEND)
    ] = None,
    backend_key_env: Annotated[
        str | None,
        typer.Option(
            metavar="VARIABLE", help="The environment variable with the backend's key.", rich_help_panel=SECTION_BACKEND
        ),
    ] = None,
    pass_key: Annotated[
        bool,
        typer.Option("--pass-key", help="Send each caller's own key to the backend.", rich_help_panel=SECTION_BACKEND),
    ] = False,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=MODEL",
            help="An alias: what callers say, and the model that is meant.",
            rich_help_panel=SECTION_BACKEND,
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="A TOML file; options count before it.")] = None,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8080,
    workers: Annotated[int, typer.Option(min=1, help="How many processes; all use one store.")] = 1,
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="Where responses are kept: a database, 'memory' or 'none'.")
    ] = None,
    api_key: Annotated[
        list[str] | None,
        typer.Option(help="A key that callers must send.", envvar="ANTIPHON_API_KEY", rich_help_panel=SECTION_SAFETY),
    ] = None,
    api_key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keys, one a line.", rich_help_panel=SECTION_SAFETY)
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Listen beyond this machine without keys.", rich_help_panel=SECTION_SAFETY),
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse what cannot be carried to the backend.")] = False,
    page: Annotated[
        bool | None, typer.Option(help="Show recent streams as pictures at /; usual on loopback.", show_default=False)
    ] = None,
    content: Annotated[bool, typer.Option("--content", help="Show in them what was said, too.")] = False,
    access_log: Annotated[bool, typer.Option("--access-log", help="Log each request's path and status.")] = False,
) -> None:
    """Serve the Responses API over a Chat Completions backend.

    Alone it serves the embedded replay backend, which needs no model, no key and no network.

    Exits 2 if an option or the configuration is no good, and 1 if nothing can listen where it is told to.

    Examples:

    antiphon serve

    antiphon serve --backend http://127.0.0.1:8000/v1 --profile vllm

    antiphon serve --config antiphon.toml --workers 2
    """
    _refuse_host(host)
    given = _backends(backend or [], profile, backend_key_env, pass_key)
    options: dict[str, Any] = {
        "backends": given or None,
        "aliases": dict(_pair(one, "--model") for one in model or []) or None,
        "store": {"url": store} if store else None,
        "api_keys": api_key or None,
        "api_key_file": str(api_key_file) if api_key_file else None,
        "strict": strict or None,
        "page": _page(page, content),
    }
    told = {name: value for name, value in options.items() if value is not None}
    _run(config, told, host, port, workers, insecure=insecure, access_log=access_log)


def _run(
    path: Path | None,
    options: Mapping[str, Any],
    host: str,
    port: int,
    workers: int,
    *,
    insecure: bool,
    access_log: bool,
) -> None:
    try:
        import uvicorn

        from antiphon.gateway import process
    except ImportError as problem:
        raise ExtraMissing(
            f"the gateway needs {problem.name}: pip install 'antiphon[gateway]'", extra="gateway"
        ) from None
    settings = process.served_config(path, options, host, insecure=insecure)
    process.check_workers(settings, workers)
    process.check_store(settings)
    app = process.served_app(settings)  # a fault in the settings shows here, before anything listens
    where = _place(host, port)
    typer.echo(_greeting(settings, where, workers))
    common: dict[str, Any] = {
        **where,
        "log_level": "info" if access_log else "warning",
        "access_log": access_log,
        "server_header": False,
        "http": process.http_protocol(),
        "timeout_graceful_shutdown": int(settings.limits.drain) + process.AFTER_DRAINING,
    }
    if workers == 1:
        uvicorn.run(app, **common)
        return
    with process.workers(path, options, host, insecure=insecure):
        uvicorn.run("antiphon.gateway.process:worker_app", factory=True, workers=workers, **common)


def _backends(given: list[str], profile: str | None, key_env: str | None, pass_key: bool) -> dict[str, dict[str, Any]]:
    """Return the backends as the configuration has them; what is said of them counts for all."""
    said = {"profile": profile, "api_key_env": key_env, "pass_caller_key": pass_key or None}
    told = {name: value for name, value in said.items() if value is not None}
    if told and not given:
        raise BadInput(
            "--profile, --backend-key-env and --pass-key are about a --backend, and none was given: add one, such as "
            "--backend http://127.0.0.1:8000/v1; the backends of a --config have these as settings of their own"
        )
    if profile is not None:
        load_profile(profile)
    if key_env is not None:
        key_in(key_env, "--backend-key-env")
    made: dict[str, dict[str, Any]] = {}
    for one in given:
        name, equals, target = one.partition("=")
        if not equals or "://" in name:
            name, target = "backend", one
        if name in made:
            raise BadInput(f"--backend {one}: there is one called {name!r} already; write NAME={target}")
        made[name] = {_what(one, target): target, **told}
    return made


def _what(given: str, target: str) -> str:
    """Return whether the target of a --backend is a "url" or a "kind". Raises BadInput where it is neither."""
    if not target:
        raise BadInput(f"--backend {given!r}: a URL is expected, or a kind, or NAME=URL")
    if target.lower().startswith(("http://", "https://")):
        return "url"
    if re.search(r"[:/.]|^localhost", target):
        way = f", such as --backend {given.removesuffix(target)}http://{target}" if "://" not in target else ""
        raise BadInput(redact(f"--backend {given}: a URL begins with http:// or https://{way}"))
    takes_option(target, "timeout")  # a kind that there is not is told now
    return "kind"


def _refuse_host(host: str) -> None:
    """Raise BadInput for what is more than a host; end the command where there is none of that name."""
    if host.startswith("unix:"):
        return
    scheme, _, bare = host.rpartition("://")
    name, _, port = bare.partition("/")[0].partition(":")
    if scheme or (port.isdecimal() and ":" not in port):
        way = f"--host {name}{f' --port {port}' if port else ''}"
        raise BadInput(f"--host {host}: a name or an address alone is expected, as in {way}")
    try:
        socket.getaddrinfo(host or None, 0, flags=socket.AI_PASSIVE)
    except OSError as problem:
        typer.echo(f"antiphon: --host {host}: nothing can listen there: {problem.strerror or problem}", err=True)
        raise typer.Exit(CANNOT_LISTEN) from None


def _page(enabled: bool | None, content: bool) -> dict[str, Any] | None:
    if enabled is False and content:
        raise BadInput("--content shows what was said in the page, and --no-page switches that off: leave one out")
    said = {"enabled": enabled, "content": content or None}
    return {name: value for name, value in said.items() if value is not None} or None


def _pair(given: str, option: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not (name and equals and value):
        raise BadInput(f"{option} {given}: NAME=MODEL is expected")
    return name, value


def _place(host: str, port: int) -> dict[str, Any]:
    """Return where to listen, as the server is told it; for port 0 with a free one. Ends the command where that cannot be."""
    try:
        if host.startswith("unix:"):
            return {"uds": _probed_path(host.removeprefix("unix:"))}
        return {"host": host, "port": _probed_port(host, port)}
    except OSError as problem:
        is_port = not host.startswith("unix:")
        option, ways = (f"--host {host} --port {port}", WAYS) if is_port else (f"--host {host}", {})
        said = f"{option}: nothing can listen there: {problem.strerror or problem}{ways.get(problem.errno or 0, '')}"
        typer.echo(f"antiphon: {said}", err=True)
        raise typer.Exit(CANNOT_LISTEN) from None


def _probed_port(host: str, port: int) -> int:
    """Return the port, after something has listened there. Raises OSError."""
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    with socket.socket(family, kind, protocol) as one:
        if os.name == "posix":  # as servers do: a port that was left a moment ago is free
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(address)
        one.listen()
        return int(one.getsockname()[1])


def _probed_path(path: str) -> str:
    """Return the path of a socket, after something has listened there; one that is left over is replaced by the server.

    Raises OSError.
    """
    if os.path.lexists(path):
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise FileExistsError(0, "there is something else than a socket")
        return path
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(path)
    os.unlink(path)
    return path


def _greeting(settings: GatewayConfig, where: Mapping[str, Any], workers: int) -> str:
    """Return what is shown at the start: where it listens, what it serves, and a request to try."""
    names = ", ".join(f"{name} ({one.url or one.kind})" for name, one in settings.named_backends().items())
    if "uds" in where:
        base, unix = "http://localhost", f"--unix-socket {where['uds']} "
    else:
        host = f"[{where['host']}]" if ":" in where["host"] else where["host"]
        base, unix = f"http://{'127.0.0.1' if host in ('0.0.0.0', '[::]') else host}:{where['port']}", ""
    key = ' -H "Authorization: Bearer $ANTIPHON_API_KEY"' if settings.api_keys or settings.api_key_file else ""
    model = "replay/reasoning" if not settings.backends else "MODEL"
    body = json.dumps({"model": model, "input": "What is an antiphon?", "stream": True})
    lines = [
        f"antiphon serves {base}/v1 over {names}{f', with {workers} processes' if workers > 1 else ''}. Try:",
        "",
        f"  curl -N {unix}{base}/v1/responses{key} -H 'Content-Type: application/json' \\",
        f"    -d '{body}'",
        "",
    ]
    return "\n".join(lines)
