"""Judges what a probe gave, in two layers: what came over the wire, and the events that came of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from antiphon_conformance import check
from antiphon_conformance.chunks import check_answer
from antiphon_conformance.exchange import Exchange
from antiphon_conformance.read import Json
from antiphon_conformance.report import Finding, Level, Report
from antiphon_conformance.results import Layer, Outcome, Run

from .answers import events_of, payloads_of
from .taking import Asked, Taken, refusal_said

FORMS = ("", "second turn")


def judge(taken: Taken, asked: Asked, strict: bool) -> Iterator[Run]:
    """Yield the runs of a probe: for each of its exchanges, one in each layer."""
    probe = taken.probe
    base = Run(probe.id, probe.title, Outcome.NOT_APPLICABLE, rules=probe.rules, needs=_needs(taken))
    first = taken.first
    if first is None:
        yield replace(base, layer=Layer.CHUNKS, reason=taken.left_out)
        return
    if probe.needs and taken.refused:
        yield replace(base, layer=Layer.CHUNKS, reason=f"the server refuses {probe.needs}: {refusal_said(first)}")
        return
    requests = _requests(taken, asked)
    for form, exchange, request in zip(FORMS, taken.exchanges, requests, strict=False):
        one = replace(base, form=form)
        yield _wire(one, exchange, strict)
        yield _events(one, exchange, request, asked, strict)


def judge_alone(name: str, exchange: Exchange, asked: Asked, strict: bool) -> Iterator[Run]:
    """Yield the runs of an exchange that belongs to no probe."""
    base = Run(name, name, Outcome.NOT_APPLICABLE)
    yield _wire(base, exchange, strict)
    request: Json = dict(exchange.request) if exchange.api == "responses" else {"model": exchange.request.get("model")}
    yield _events(base, exchange, request, asked, strict)


def _needs(taken: Taken) -> tuple[str, ...]:
    return (taken.probe.needs,) if taken.probe.needs else ()


def _requests(taken: Taken, asked: Asked) -> list[Json]:
    """Return the request of each exchange, as Responses create parameters."""
    requests = [asked.request(taken.probe)]
    for exchange in taken.exchanges[:1] if len(taken.exchanges) > 1 else ():
        requests.append(asked.second(taken.probe, exchange) or requests[0])
    return requests


def _wire(base: Run, exchange: Exchange, strict: bool) -> Run:
    """Return the run in the layer of what came."""
    report = check_answer(exchange)
    return replace(_judged(base, report, strict), layer=Layer.CHUNKS, chunks=tuple(report.events))


def _events(base: Run, exchange: Exchange, request: Json, asked: Asked, strict: bool) -> Run:
    """Return the run in the layer of the events."""
    reason = _without_events(exchange)
    if reason:
        return replace(base, reason=reason)
    found = payloads_of(exchange.body)
    if not found.values:
        return replace(base, reason="the body holds nothing that can be read")
    if exchange.api == "responses":
        return replace(_judged(base, check(found.values, request=request), strict), events=tuple(found.values))
    events = events_of(exchange, asked.profile, request)
    report = check(events, chunks=found.values, request=request, profile=asked.profile, done=found.done)
    return replace(_judged(base, report, strict), chunks=tuple(found.values), events=tuple(events))


def _without_events(exchange: Exchange) -> str:
    """Return why there are no events to look at, or ""."""
    if exchange.left:
        return "the client left"
    if not exchange.streamed:
        return "no stream was asked for"
    if not exchange.answered:
        return "there is no answer that could be converted"
    return ""


def _judged(base: Run, report: Report, strict: bool) -> Run:
    failing = any(one.level in _failing(strict) for one in report.findings)
    outcome = Outcome.FAIL if failing else Outcome.PASS
    return replace(base, outcome=outcome, findings=report.findings, ran=report.ran)


def _failing(strict: bool) -> tuple[Level, ...]:
    return (Level.MUST, Level.SHOULD) if strict else (Level.MUST,)


def broken(runs: tuple[Run, ...], layer: Layer, *levels: Level) -> dict[str, list[tuple[Run, Finding]]]:
    """Return what is broken in a layer: code -> where, by code."""
    found: dict[str, list[tuple[Run, Finding]]] = {}
    for run in runs:
        for finding in run.findings if run.layer is layer else ():
            if finding.level in levels:
                found.setdefault(finding.code, []).append((run, finding))
    return dict(sorted(found.items()))
