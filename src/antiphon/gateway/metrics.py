"""What is counted, as Prometheus text. Labels hold names from the configuration, never what callers send."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Labels = tuple[tuple[str, str], ...]
SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
RUNNING, BACKGROUND, PROCESSES = "antiphon_responses_running", "antiphon_background_running", "antiphon_processes"
GAUGES = {
    RUNNING: "Responses that are made now, and streams that are followed.",
    BACKGROUND: "Responses that are made in the background now.",
    PROCESSES: "Processes that these numbers are of.",
}
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class Counter:
    """Something that only grows."""

    name: str
    about: str
    values: dict[Labels, float] = field(default_factory=dict[Labels, float])

    def add(self, amount: float = 1, **labels: str) -> None:
        """Count `amount` more."""
        key = tuple(sorted(labels.items()))
        self.values[key] = self.values.get(key, 0) + amount

    def held(self) -> list[Any]:
        """Return the values as JSON data."""
        return [[labels, value] for labels, value in self.values.items()]

    def join(self, held: Iterable[Any]) -> None:
        """Add what another process counted."""
        for labels, value in held:
            self.add(value, **dict(labels))

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text format."""
        yield from _head(self.name, self.about, "counter")
        for labels, value in sorted(self.values.items()):
            yield f"{self.name}{_shown(labels)} {value:g}"


@dataclass(slots=True)
class Histogram:
    """Durations in seconds."""

    name: str
    about: str
    buckets: Sequence[float] = SECONDS
    counts: dict[Labels, list[int]] = field(default_factory=dict[Labels, list[int]])
    sums: dict[Labels, float] = field(default_factory=dict[Labels, float])

    def observe(self, seconds: float, **labels: str) -> None:
        """Count one duration."""
        key = tuple(sorted(labels.items()))
        counts = self.counts.setdefault(key, [0] * (len(self.buckets) + 1))
        counts[bisect_left(self.buckets, seconds)] += 1
        self.sums[key] = self.sums.get(key, 0.0) + seconds

    def held(self) -> list[Any]:
        """Return the values as JSON data."""
        return [[labels, counts, self.sums[labels]] for labels, counts in self.counts.items()]

    def join(self, held: Iterable[Any]) -> None:
        """Add what another process counted."""
        for labels, counts, total in held:
            key: Labels = tuple((name, value) for name, value in labels)
            mine = self.counts.get(key, [0] * (len(self.buckets) + 1))
            self.counts[key] = [one + other for one, other in zip(mine, counts, strict=True)]
            self.sums[key] = self.sums.get(key, 0.0) + total

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text format."""
        yield from _head(self.name, self.about, "histogram")
        for labels, counts in sorted(self.counts.items()):
            total = 0
            for limit, count in zip((*map("{:g}".format, self.buckets), "+Inf"), counts, strict=True):
                total += count
                yield f"{self.name}_bucket{_shown((*labels, ('le', limit)))} {total}"
            yield f"{self.name}_sum{_shown(labels)} {self.sums[labels]:g}"
            yield f"{self.name}_count{_shown(labels)} {total}"


class Metrics:
    """All that one process counts."""

    def __init__(self) -> None:
        self.requests = Counter("antiphon_http_requests_total", "HTTP requests by route and status.")
        self.responses = Counter("antiphon_responses_total", "Responses by backend and how they ended.")
        self.events = Counter("antiphon_events_total", "Events that were sent, by backend.")
        self.tokens = Counter("antiphon_tokens_total", "Tokens that backends reported, by backend and direction.")
        self.retries = Counter("antiphon_backend_retries_total", "Requests that were sent again, by backend.")
        self.refusals = Counter("antiphon_refusals_total", "Requests that were refused, by code.")
        self.store_failures = Counter("antiphon_store_failures_total", "Operations of the store that failed.")
        self.first_event = Histogram("antiphon_first_event_seconds", "From the request to the first event.")
        self.duration = Histogram("antiphon_response_seconds", "From the request to the end of the response.")

    def held(self) -> dict[str, Any]:
        """Return everything that only grows, as JSON data."""
        return {name: one.held() for name, one in vars(self).items()}

    def join(self, held: Mapping[str, Any]) -> None:
        """Add what another process counted."""
        for name, one in vars(self).items():
            one.join(held[name])

    def text(self, gauges: Mapping[str, int]) -> str:
        """Return everything in the text format. `gauges`: what there is now, by the names of `GAUGES`."""
        lines: list[str] = []
        for one in vars(self).values():
            lines += one.lines()
        for name, value in gauges.items():
            lines += [*_head(name, GAUGES[name], "gauge"), f"{name} {value}"]
        return "\n".join([*lines, ""])


def _head(name: str, about: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def _shown(labels: Labels) -> str:
    if not labels:
        return ""
    shown = (f'{name}="{_escaped(value)}"' for name, value in labels)
    return "{" + ",".join(shown) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
