"""What all routes share: the configuration's parts, and how one response is made, kept, counted and let go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from antiphon.backend import Backend
from antiphon.profile import Profile

from .answer import Answer, Answers, with_fields
from .background import Background
from .beside import Beside
from .cancelling import Cancelling
from .config import NO_STORE, GatewayConfig
from .errors import ApiError, ShuttingDown, StoreUnavailable
from .keys import Caller, Keys
from .making import Maker, Making, overloaded
from .metrics import BACKGROUND, PROCESSES, RUNNING, Metrics
from .page import Page
from .recorded import Recorded
from .router import Router
from .running import Run
from .stopping import Stop, StoppableBackend
from .store import Store
from .stored import Stored

log = logging.getLogger("antiphon.gateway")
KEPT = frozenset({"completed", "incomplete"})
HURRIED = 2.0  # seconds in which background responses are stored when the gateway is to end at once


class Gateway:
    """One gateway: what is made of a configuration. It may be asked at once, and opens what it needs when it needs it.

    `backends`, `profiles`: by name, instead of those that would be made; the rest of the configuration counts.
    """

    def __init__(
        self,
        config: GatewayConfig,
        backends: Mapping[str, Backend] | None = None,
        profiles: Mapping[str, str | Profile] | None = None,
    ) -> None:
        self.config = config
        self.keys = Keys.of(config)
        self.router = Router(config, backends or {}, profiles or {})
        self.store = None if config.store.url == NO_STORE else Store(config.store)
        self.answers = Answers(config.limits)
        self.metrics = Metrics()
        self.page = Page(config.page) if config.page.enabled else None
        self.beside: Beside | None = None  # processes behind the same port, whose counts are told with ours
        self.draining = False
        self.background = None if self.store is None else Background(config, self.store, self.let_go)
        self.cancelling = Cancelling(config.store, self.answers, self.router.ids, self.store)
        self.maker = Maker(config, self.router, self.store)
        self._drained: asyncio.TimerHandle | None = None

    def needed_store(self) -> Store:
        """Return the store. Raises ApiError where there is none."""
        if self.store is None:
            raise ApiError(404, "this gateway stores nothing: configure store.url", code="store_disabled")
        return self.store

    def needed_background(self) -> Background:
        """Return what makes background responses. Raises ApiError where there is no store."""
        self.needed_store()
        assert self.background is not None
        return self.background

    # --- one response ------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def place(self) -> AsyncGenerator[None]:
        """Hold one of the places for responses. Raises ApiError where none is free, or the gateway is about to end."""
        self.take_place()
        try:
            yield
        finally:
            self.answers.give_back()

    def take_place(self) -> None:
        """Take a place, which `answers.give_back` gives back."""
        if self.draining:
            raise ShuttingDown("the gateway is about to end")
        if not self.answers.take():
            raise overloaded(self.config.limits.streams)

    async def whole(self, making: Making, caller: Caller) -> dict[str, Any]:
        """Return the response to a request that is not streamed. Raises what its backend raises."""
        began = asyncio.get_running_loop().time()
        stop = Stop()
        exchange = making.exchange
        exchange.backend = StoppableBackend(exchange.backend, stop)
        self.answers.stops.add(stop)
        outcome = "left"
        try:
            response: dict[str, Any] = await exchange.response("dict")
            outcome = str(response["status"])
            response = {**response, **await self._keep(making, caller, response, None)}
            self._count_tokens(making, response)
            return response
        except Exception:
            outcome = "failed"
            raise
        finally:
            self.answers.stops.discard(stop)
            self._count(making, outcome, began)

    def answer(self, making: Making, caller: Caller) -> Answer:
        """Return the answer to a streamed request, to be begun; `let_go` ends it."""
        recorded = Recorded() if making.keeps or self.page is not None else None
        if recorded is not None and self.page is not None:
            self.page.show(caller, making.named.name, recorded)

        async def finish(event: bytes, final: dict[str, Any]) -> bytes:
            if recorded is not None:
                recorded.add(event)
            self._count_tokens(making, final)
            changed = await self._keep(making, caller, final, recorded)
            return with_fields(event, changed) if changed else event

        answer = Answer(making.exchange, caller, self.config.limits, finish)
        if recorded is not None:
            answer.seen.append(lambda event: None if answer.ended else recorded.add(event))
        self.answers.add(answer)
        self.cancelling.watch()
        return answer

    async def begin_background(self, making: Making, caller: Caller) -> Run:
        """Begin a response that is made whether its caller stays or not. Raises StoreUnavailable where it cannot be kept."""
        recorded = Recorded()
        run = await self.needed_background().begin(making, caller, recorded)
        if self.page is not None:
            self.page.show(caller, making.named.name, recorded)
        return run

    async def let_go(self, answer: Answer, making: Making) -> None:
        """Close an answer, however far it came, and count it."""
        self.answers.remove(answer)
        await answer.aclose()
        backend = making.named.name
        self.metrics.events.add(answer.events, backend=backend)
        outcome = answer.outcome
        if outcome == "left":
            log.info("response %s was left by its client after %d events", answer.id or "(not begun)", answer.events)
        if outcome == "broken" and answer.broken is not None:
            log.error("response %s broke: %s", answer.id, where(answer.broken))
        self._count(making, outcome, answer.began)

    def gauges(self) -> dict[str, int]:
        """Return what there is now."""
        return {RUNNING: len(self.answers), BACKGROUND: len(self.background or ()), PROCESSES: 1}

    async def counted(self) -> str:
        """Return what was counted here, and by the processes beside this one, as Prometheus text."""
        if self.beside is None:
            return self.metrics.text(self.gauges())
        joined, gauges = await self.beside.joined()
        return joined.text(gauges)

    # --- the end -----------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Take no more requests; end, as failed, what is still being made after the time that is configured."""
        if self.draining:
            return
        self.draining = True
        loop = asyncio.get_running_loop()
        self._drained = loop.call_later(self.config.limits.drain, self._end_all, "the gateway is shutting down")

    async def hurry(self) -> None:
        """End, as failed, what is still being made, now; return once that is stored, or too late."""
        self.drain()
        if self._drained is not None:
            self._drained.cancel()
            self._drained = None
        self._end_all("the gateway is shutting down")
        if self.background is not None:
            await self.background.finished(HURRIED)

    async def aclose(self) -> None:
        """End all responses, and close what is open. One that drains lets background responses have their time."""
        if self._drained is not None and self.background is not None:
            await self.background.finished(self._drained.when() - asyncio.get_running_loop().time())
        if self._drained is not None:
            self._drained.cancel()
        self.answers.end_all("the gateway was shut down")
        await self.cancelling.aclose()
        if self.background is not None:
            await self.background.aclose()
        await self.router.aclose()
        if self.store is not None:
            await self.store.aclose()

    # --- inside ------------------------------------------------------------------------------------------------

    def _end_all(self, why: str) -> None:
        self.answers.end_all(why)
        if self.background is not None:
            self.background.end_all(why)

    async def _keep(
        self, making: Making, caller: Caller, response: dict[str, Any], recorded: Recorded | None
    ) -> dict[str, Any]:
        """Store a finished response. Return what changes in it: where it is not stored, it says so."""
        if not making.keeps or self.store is None:
            return {}
        if response.get("status") not in KEPT:
            return {"store": False}
        history = making.history
        events = recorded.packed() if recorded is not None else None
        try:
            await self.store.put(
                Stored(response, history.own, events, history.previous_id, history.conversation_id), caller.owner
            )
        except StoreUnavailable:
            self.metrics.store_failures.add()
            return {"store": False}
        return {}

    def _count_tokens(self, making: Making, response: Mapping[str, Any]) -> None:
        usage: dict[str, Any] = response.get("usage") or {}
        for direction in ("input", "output"):
            self.metrics.tokens.add(usage.get(f"{direction}_tokens", 0), backend=making.named.name, direction=direction)

    def _count(self, making: Making, outcome: str, began: float) -> None:
        backend = making.named.name
        self.metrics.responses.add(backend=backend, outcome=outcome)
        self.metrics.duration.observe(asyncio.get_running_loop().time() - began, backend=backend)
        if making.exchange.requests > 1:
            self.metrics.retries.add(making.exchange.requests - 1, backend=backend)


def where(problem: BaseException) -> str:
    """Return the kind of an error and where it was raised, without its message: that may hold what callers said."""
    frames: list[str] = []
    at = problem.__traceback__
    while at is not None:
        code = at.tb_frame.f_code
        frames.append(f"{code.co_filename.rpartition('/')[2]}:{at.tb_lineno} {code.co_name}")
        at = at.tb_next
    return f"{type(problem).__name__} at {' > '.join(frames[-8:])}"
