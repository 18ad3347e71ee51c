"""`Spending`: what a run has cost, and whether a probe may still be asked."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field

from antiphon_conformance.exchange import Exchange
from antiphon_conformance.read import mapping, number

from .options import Budget
from .probe import Probe


@dataclass(slots=True)
class Spending:
    """What was spent of a budget."""

    budget: Budget
    requests: int = 0
    tokens: int = 0
    begun: float = field(default_factory=time.monotonic)

    @property
    def seconds_left(self) -> float | None:
        """The seconds that are left, None for without limit."""
        if self.budget.seconds is None:
            return None
        return max(self.budget.seconds - (time.monotonic() - self.begun), 0.0)

    def refuses(self, probe: Probe) -> str:
        """Return why the budget does not allow the probe, or ""; else it is taken to be spent at once."""
        requests, tokens, seconds = self.budget.requests, self.budget.tokens, self.seconds_left
        if requests is not None and self.requests + probe.requests > requests:
            return f"the budget of {requests} requests is used up"
        if tokens is not None and self.tokens + probe.tokens > tokens:
            return f"the budget of {tokens} tokens does not allow it: it may take {probe.tokens}"
        if seconds is not None and seconds <= 0:
            return f"the budget of {self.budget.seconds:g} s is used up"
        self.requests += probe.requests
        self.tokens += probe.tokens
        return ""

    def settle(self, probe: Probe, exchanges: tuple[Exchange, ...]) -> None:
        """Put what the probe really cost in the place of what it might have."""
        self.tokens += sum(map(tokens_of, exchanges)) - probe.tokens


def tokens_of(exchange: Exchange) -> int:
    """Return the tokens of an exchange and its companions: as the server counts, else a quarter of the characters."""
    others = sum(tokens_of(one) for one in (exchange.twin, exchange.beside, exchange.after) if one is not None)
    counted = [number(mapping(chunk["usage"]).get("total_tokens")) or 0 for _, chunk in exchange.trace.usages]
    return others + (max(counted, default=0) or _estimate(exchange))


def _estimate(exchange: Exchange) -> int:
    if not exchange.answered:
        return 0
    pieces = exchange.body.count(b"\n\n") if exchange.streamed else len(exchange.body) // 8
    return len(json.dumps(exchange.request)) // 4 + pieces
