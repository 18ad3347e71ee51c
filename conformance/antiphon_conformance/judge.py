"""`check`: all rules over one stream of events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec

from .read import plain
from .report import Finding, Report
from .rule import AnswerNeed, Need, all_rules
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
    ran: list[str] = []
    left_out: dict[str, str] = {}
    findings: list[Finding] = []
    for rule in all_rules():
        reason = next((need.value for need in rule.needs if not _met(need, trace)), None)
        if reason is not None:
            left_out[rule.code] = reason
            continue
        ran.append(rule.code)
        findings += rule.apply(trace)
    return Report(tuple(sorted(findings, key=_place)), tuple(ran), left_out, trace.events)


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
