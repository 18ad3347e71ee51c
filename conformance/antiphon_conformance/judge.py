"""`check`: all rules over one stream of events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec

from .read import plain
from .report import Finding, Report
from .rule import AnswerNeed, Need, Rule, all_rules
from .said import ProfileFacts
from .trace import Trace


def check(
    events: Iterable[object],
    *,
    chunks: Iterable[object] | None = None,
    request: Mapping[str, object] | None = None,
    profile: str | ProfileFacts | None = None,
    starting_after: int | None = None,
    done: bool | None = None,
) -> Report:
    """Return what the rules say about `events`, which are dicts, model objects, or both. Never raises for what they
    hold.

    `chunks` are all the Chat Completions chunks that the events were made of; their source is taken to have ended by
    itself, and `done` says whether with `[DONE]`. `request` are the create params. Without them the rules that need them are not applicable. `profile` is the
    one that the events were made with. `starting_after` is the number after which a resumed stream begins.
    """
    trace = Trace(
        events,
        chunks=chunks,
        request=plain(request) if request is not None else None,
        profile=_facts(profile),
        starting_after=starting_after,
        done=done,
    )
    ran: list[Rule] = []
    left_out: dict[str, str] = {}
    for rule in all_rules():
        reason = next((need.value for need in rule.needs if not _met(need, trace)), None)
        if reason is None:
            ran.append(rule)
        else:
            left_out[rule.code] = reason
    findings = sorted(_findings(trace, ran), key=_place)
    return Report(tuple(findings), tuple(rule.code for rule in ran), left_out, trace.events)


def _findings(trace: Trace, rules: Iterable[Rule]) -> Iterator[Finding]:
    """Yield what each rule finds: those that judge each item alone are given some items at a time."""
    alone = [rule for rule in rules if rule.alone]
    for rule in rules:
        if not rule.alone:
            yield from rule.apply(trace)
    for block in trace.blocks:
        for rule in alone:
            yield from rule.apply(block)


def _met(need: Need | AnswerNeed, trace: Trace) -> bool:
    match need:
        case AnswerNeed():
            return False
        case Need.CHUNKS:
            return trace.said is not None
        case Need.REQUEST:
            return trace.request is not None
        case Need.NUMBERS:
            return trace.numbered or not trace.events
        case Need.OPEN_RESPONSES:
            return find_spec("openresponses_types") is not None


def _place(finding: Finding) -> tuple[int, str]:
    return (finding.index if finding.index is not None else -1, finding.code)


def _facts(profile: str | ProfileFacts | None) -> ProfileFacts | None:
    """Return the profile: a name is looked up among the installed ones."""
    if not isinstance(profile, str):
        return profile
    from antiphon.profile import load_profile

    return load_profile(profile)
