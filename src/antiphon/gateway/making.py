"""A create request, from its body to an answer that can be begun: checked, routed, with its history, converted."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, TypeVar

import msgspec

from antiphon.models.exchange import Exchange
from antiphon.request import BadRequest, Change
from antiphon.request.report import REFUSED

from .bodies import Body
from .compacted import opened
from .config import GatewayConfig
from .errors import ApiError, StoreUnavailable, invalid
from .history import History, history_of
from .keys import Caller
from .router import Named, Router
from .schema import CREATE, Schema, check
from .store import Store

# Of client libraries, and not of the API: a caller must not reach the backend's headers and body by them.
UNTOLD = frozenset({"extra_headers", "extra_query", "extra_body", "timeout"})
# What the gateway does itself, so that no backend is told.
OURS = frozenset({"previous_response_id", "conversation", "store", "background"})
_ITEM = re.compile(r"input\[(\d+)\]")
P = ParamSpec("P")
T = TypeVar("T")
MOST_ITEMS = 500  # that are converted on the event loop
MOST_PARAMS = 256
MOST_WARNINGS = 10  # headers of one answer
_LONGEST_WARNING = 300


@dataclass(frozen=True, slots=True)
class Making:
    """A response that is about to be made. `keeps`: it is to be stored. `streams`: the caller wants events.
    `background`: it is made whether the caller stays or not. `notes`: what is not done as it was asked."""

    exchange: Exchange
    named: Named
    history: History
    keeps: bool
    streams: bool
    background: bool
    notes: tuple[str, ...]


class Maker:
    """Makes requests ready to be sent. Nothing reaches a backend here, and all that is wrong raises."""

    def __init__(self, config: GatewayConfig, router: Router, store: Store | None) -> None:
        self._config, self._router, self._store = config, router, store

    async def make(self, body: Body, caller: Caller) -> Making:
        """Return what is to be done for a create request. Raises ApiError and BadRequest, which name the parameter."""
        params = {name: value for name, value in body.held.items() if name not in UNTOLD}
        notes = [
            *body.notes,
            *(f"{name}: ignored: it is of the client library" for name in body.held if name in UNTOLD),
        ]
        if self._config.default_model is not None and params.get("model") is None:
            params["model"] = self._config.default_model
        await _done(body.is_large, _check, params)
        named, model = self._router.find(params["model"])
        background = bool(params.get("background"))
        keeps = await self._keeps(params, notes)
        history = await history_of(params, self._store, caller.owner, self._config.limits.history_items)
        streams = bool(params.get("stream"))
        told = {name: value for name, value in params.items() if name not in OURS}
        headers = {"Authorization": f"Bearer {caller.key}"} if named.config.pass_caller_key and caller.key else None
        told["input"] = [opened(one) for one in (*history.before, *history.own)]
        much = body.is_large or len(told["input"]) > MOST_ITEMS
        try:
            exchange = await _done(much, model.exchange, told, stream=streams or background, headers=headers)
        except BadRequest as problem:
            raise BadRequest(_place(problem.param, history), problem.message) from None
        exchange.echo = {**params, "store": keeps, "background": background}
        notes += [_told(change, history) for change in exchange.chat.report if change.kind in REFUSED]
        return Making(exchange, named, history, keeps, streams, background, tuple(notes))

    async def make_aside(self, body: Body, caller: Caller, known: Mapping[str, Schema], **settled: Any) -> Making:
        """Return what is to be done for another request that is answered by asking the model, and is not stored.

        `known`: the parameters that it has. `settled`: those that are given whatever it says.
        """
        held = {name: value for name, value in body.held.items() if name in known}
        notes: list[str] = []
        for name, value in body.held.items():
            if name not in known and value is not None:
                self._lost(notes, name[:64], "this request has no such parameter")
        making = await self.make(Body({**held, **settled, "store": False}, body.is_large, body.notes), caller)
        return replace(making, notes=(*notes, *making.notes))

    async def _keeps(self, params: Mapping[str, Any], notes: list[str]) -> bool:
        """Return whether the response is to be stored: as it is asked for, and by default where that can be done."""
        asked = params.get("store")
        if params.get("background"):
            if asked is False:
                raise invalid(
                    "background", "a background response is kept in the store: 'store' cannot be false with it"
                )
            if self._store is None:
                raise invalid("background", "this gateway stores nothing, and background responses need its store.url")
            return True  # where the store is away, its first operation raises
        if asked is False:
            return False
        if self._store is None:
            if asked:
                self._lost(notes, "store", "this gateway stores nothing")
            return False
        try:
            await self._store.ready()
        except StoreUnavailable:
            if asked:
                raise
            notes.append("store: dropped: the store cannot be used now")
            return False
        return True

    def _lost(self, notes: list[str], param: str, why: str) -> None:
        """Note what is not done as it was asked. Raises ApiError where the configuration does not let it pass."""
        if self._config.strict:
            raise invalid(param, f"'{param}' cannot be done: {why}")
        notes.append(f"{param}: dropped: {why}")


async def _done(aside: bool, act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what `act` gives; `aside`: in a thread, so that other requests go on meanwhile."""
    return await asyncio.to_thread(act, *args, **kwargs) if aside else act(*args, **kwargs)


def _check(params: Mapping[str, Any]) -> None:
    goes_on = params.get("previous_response_id") is not None or params.get("conversation") is not None
    if len(params) > MOST_PARAMS:
        raise ApiError(400, f"the request has {len(params)} parameters, and at most {MOST_PARAMS} are read")
    check(params, CREATE, ("model",) if goes_on else ("model", "input"))
    for name in params:
        if not name.isprintable() or len(name) > 128:
            raise invalid(repr(name[:64]), "a parameter has a name that is none")
    if not str(params.get("model", "")).isprintable():  # it goes into logs
        raise invalid("model", "Invalid value for 'model': it holds characters that cannot be shown.")


def _told(change: Change, history: History) -> str:
    return str(msgspec.structs.replace(change, path=_place(change.path, history)))


def _place(path: str, history: History) -> str:
    """Return where something is in the request as it came: there, what it goes on from is not in its input."""
    found = _ITEM.match(path)
    if found is None or not history.before:
        return path
    number = int(found[1]) - len(history.before)
    if number >= 0:
        return f"input[{number}]{path[found.end() :]}"
    return "conversation" if history.previous_id is None else "previous_response_id"


def warning_headers(notes: tuple[str, ...]) -> list[tuple[bytes, bytes]]:
    """Return the `Warning` headers for what was not done as it was asked. Source: RFC 9111, section 5.5, code 299."""
    shown = list(notes[:MOST_WARNINGS])
    if len(notes) > MOST_WARNINGS:
        shown[-1] = f"and {len(notes) - MOST_WARNINGS + 1} more"
    return [(b"warning", f'299 antiphon "{_quoted(note)}"'.encode()) for note in shown]


def _quoted(note: str) -> str:
    """Return a text as a quoted string may hold it: printable ASCII."""
    plain = "".join(one if " " <= one <= "~" else "?" for one in note[:_LONGEST_WARNING])
    return plain.replace("\\", "\\\\").replace('"', '\\"')


def overloaded(most: int, where: str = "") -> ApiError:
    """Return the error for a response that has no place."""
    return ApiError(
        503,
        f"{most} responses are being made{where}, and no more are allowed",
        code="server_overloaded",
        headers={"Retry-After": "1"},
    )
