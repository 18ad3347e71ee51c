"""What a reader of a live report is told in sentences: whether it works, through which quirks, and what is refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from antiphon_conformance import find
from antiphon_conformance.exchange import Api
from antiphon_conformance.report import Level
from antiphon_conformance.results import Layer, Outcome, Run

from .fitting import Fit
from .judging import broken


def notes_of(runs: tuple[Run, ...], fitted: Fit, api: Api, interrupted: bool) -> Iterator[str]:
    """Yield the notes of a run."""
    if interrupted:
        yield "the run was interrupted: what follows is about the probes before that"
    if api == "chat":
        yield from _chat(runs, fitted)
    else:
        yield from _native(runs)
    refused = [
        run for run in runs if run.outcome is Outcome.NOT_APPLICABLE and run.reason.startswith("the server refuses")
    ]
    for run in refused:
        yield f"{run.case}: {run.reason}"


def _chat(runs: tuple[Run, ...], fitted: Fit) -> Iterator[str]:
    quirks = broken(runs, Layer.CHUNKS, Level.MUST, Level.SHOULD)
    faults = broken(runs, Layer.EVENTS, Level.MUST)
    converted = sum(1 for run in runs if run.layer is Layer.EVENTS and run.ran)
    if not converted:
        yield "does not work: no answer could be converted"
    elif faults:
        yield f"does not work: {_named(faults)}"
    elif quirks or fitted.facts:
        facts = "; ".join(f"{fact.field} ({fact.why})" for fact in fitted.facts)
        yield f"works, through these quirks: {_named(quirks) or 'none in the chunks'}{f'; profile: {facts}' if facts else ''}"
    else:
        yield "works: the chunk stream is what OpenAI's own server would send"


def _native(runs: tuple[Run, ...]) -> Iterator[str]:
    faults = broken(runs, Layer.EVENTS, Level.MUST)
    judged = any(run.layer is Layer.EVENTS and run.ran for run in runs)
    if not judged:
        yield "no event stream came"
    elif faults:
        yield f"the event stream is not canonical: {_named(faults)}"
    else:
        yield "the event stream is canonical"


def _named(codes: Iterable[str]) -> str:
    """Return codes with the names of their rules."""
    return ", ".join(f"{rule.code} {rule.name}" for rule in map(find, codes) if rule is not None)
