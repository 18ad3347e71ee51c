"""`fit`: the profile that fits a server, from what it answered to the probes; and its source, ready to paste."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from antiphon.profile import DEFAULT, REASONING_FIELDS, RESPONSE_FORMATS, TOOL_CHOICE_MODES, Profile, Quirk
from antiphon_conformance.chunks import AnswerTrace, check_answer
from antiphon_conformance.read import number, text
from antiphon_conformance.rules.chunk_choices import is_cumulative
from antiphon_providers.quirks import CumulativeText, SplitTags, ToolCallTags

from .taking import Taken

Results = Mapping[str, Taken]
TAGS = {f"<{name}>": f"</{name}>" for name in ("think", "thinking", "reasoning", "thought")}
CALL_TAG = "<tool_call>"
_THOUGHT = ("reason", "think", "thought")  # what the name of a field of thoughts has in it


class Fact(NamedTuple):
    """One field of the profile: its value, and what shows it."""

    field: str
    value: Any
    why: str


@dataclass(frozen=True, slots=True)
class Fit:
    """A profile, and what each of its facts rests on, in the order in which they were found."""

    profile: Profile
    facts: tuple[Fact, ...] = ()
    traces: tuple[AnswerTrace, ...] = field(default=(), repr=False)

    def source(self) -> str:
        """Return Python that makes the profile, with the evidence as comments."""
        return "\n".join(_source(self))


def fit(results: Results, base: Profile) -> Fit:
    """Return the profile that fits: `base`, with what was found put in its place."""
    traces = tuple(one.trace for taken in results.values() for one in taken.exchanges if one.answered and one.streamed)
    found = [fact for look in _LOOKS for fact in look(results, traces) if getattr(base, fact.field) != fact.value]
    return Fit(replace(base, **{fact.field: fact.value for fact in found}), tuple(found), traces)


# --- what the chunks show ---------------------------------------------------------------------------------------------


def _reasoning_fields(results: Results, traces: tuple[AnswerTrace, ...]) -> Iterator[Fact]:
    seen = dict.fromkeys(
        key
        for trace in traces
        for one in trace.choices
        for key, value in one.delta.items()
        if any(part in key for part in _THOUGHT) and text(value)
    )
    if any(key not in REASONING_FIELDS for key in seen) or list(seen) != list(REASONING_FIELDS[: len(seen)]):
        rest = [key for key in REASONING_FIELDS if key not in seen]
        yield Fact("reasoning_fields", (*seen, *rest), f"deltas have {', '.join(seen)}")


def _finish_reason_optional(results: Results, traces: tuple[AnswerTrace, ...]) -> Iterator[Fact]:
    whole = [trace for trace in traces if trace.whole and any(one.says for one in trace.choices)]
    if whole and not any(trace.finish(index) for trace in whole for index in trace.by_choice):
        yield Fact("finish_reason_optional", True, f"none of {len(whole)} streams has a finish_reason")


def _quirks(results: Results, traces: tuple[AnswerTrace, ...]) -> Iterator[Fact]:
    quirks: list[Quirk] = []
    why: list[str] = []
    if any(_is_cumulative(trace) for trace in traces):
        quirks.append(CumulativeText())
        why.append("each delta repeats the text so far")
    begun = [trace.content().lstrip() for trace in traces]
    for tag, end in TAGS.items():
        if any(one.startswith(tag) for one in begun):
            quirks.append(SplitTags(tag, end))
            why.append(f"content begins with {tag}")
    offered = [trace for trace in traces if trace.asked.get("tools") and trace.asked.get("tool_choice") != "none"]
    if any(CALL_TAG in trace.content() for trace in offered) and not any(trace.calls for trace in offered):
        quirks.append(ToolCallTags())
        why.append("calls come as text")
    if quirks:
        yield Fact("quirks", tuple(quirks), "; ".join(why))


def _is_cumulative(trace: AnswerTrace) -> bool:
    pieces = [piece for one in trace.by_choice.get(0, ()) if (piece := text(one.delta.get("content")))]
    return is_cumulative(pieces)


# --- what the server takes --------------------------------------------------------------------------------------------

# Refused probe, probe that must have been served for that to say anything -> what it says.
_REFUSALS: tuple[tuple[str, str, str, Any], ...] = (
    ("developer", "system", "developer_role", False),
    ("two-systems", "text", "single_leading_system", True),
    ("usage", "text", "stream_usage", False),
    ("history-null", "history", "null_content_with_calls", False),
    ("image", "text", "images", False),
    ("calls-one-by-one", "call", "parallel_tool_calls", False),
    ("strict-tool", "call", "strict_tools", False),
    ("reasoning-effort", "reasoning", "effort_field", "none"),
)
_FORMATS = {"json-schema": "json_schema", "json-object": "json_object"}
_CHOICES = {"choice-none": "none", "choice-required": "required", "choice-named": "named"}


def _refused(results: Results, probe: str) -> bool:
    return probe in results and results[probe].refused


def _served(results: Results, probe: str) -> bool:
    return probe in results and results[probe].served


def _refusals(results: Results, traces: tuple[AnswerTrace, ...]) -> Iterator[Fact]:
    for refused, served, name, value in _REFUSALS:
        if _refused(results, refused) and _served(results, served):
            yield Fact(name, value, f"{results[refused].probe.needs}: refused")


def _max_tokens_field(results: Results, traces: tuple[AnswerTrace, ...]) -> Iterator[Fact]:
    if _kept(results, "limit-completion") is False and _kept(results, "limit-max-tokens"):
        yield Fact("max_tokens_field", "max_tokens", "max_completion_tokens is refused, or does not limit")


def _kept(results: Results, probe: str) -> bool | None:
    """Return whether the limit of a probe was kept, None where that is unknown."""
    taken = results.get(probe)
    if taken is None or taken.first is None or taken.first.status is None:
        return None
    if taken.refused:
        return False
    trace = taken.first.trace
    if trace.finish():
        return trace.finish() == "length" or not _exceeds(trace)
    return None


def _exceeds(trace: AnswerTrace) -> bool:
    limit = number(trace.asked.get("max_tokens")) or number(trace.asked.get("max_completion_tokens")) or 0
    return sum(1 for one in trace.choices if one.says) > limit + 2


def _response_formats(results: Results, traces: tuple[AnswerTrace, ...]) -> Iterator[Fact]:
    refused = {name for probe, name in _FORMATS.items() if _refused(results, probe)}
    if refused and _served(results, "text"):
        yield Fact("response_formats", RESPONSE_FORMATS - refused, f"refused: {', '.join(sorted(refused))}")


def _tool_choice_modes(results: Results, traces: tuple[AnswerTrace, ...]) -> Iterator[Fact]:
    refused = {name for probe, name in _CHOICES.items() if _refused(results, probe)}
    ignored = {name for probe, name in _CHOICES.items() if _served(results, probe) and _ignored(results[probe])}
    if (refused or ignored) and _served(results, "call"):
        said = [
            f"{verb}: {', '.join(sorted(names))}"
            for verb, names in (("refused", refused), ("not kept", ignored))
            if names
        ]
        yield Fact("tool_choice_modes", TOOL_CHOICE_MODES - refused - ignored, "; ".join(said))


def _ignored(taken: Taken) -> bool:
    return taken.first is not None and any(one.code == "CHT074" for one in check_answer(taken.first).findings)


_LOOKS: tuple[Callable[[Results, tuple[AnswerTrace, ...]], Iterator[Fact]], ...] = (
    _reasoning_fields,
    _finish_reason_optional,
    _quirks,
    _refusals,
    _max_tokens_field,
    _response_formats,
    _tool_choice_modes,
)

# --- the source -------------------------------------------------------------------------------------------------------


def _source(fitted: Fit) -> Iterator[str]:
    profile = fitted.profile
    why = {fact.field: fact.why for fact in fitted.facts}
    yield "from antiphon.profile import Profile"
    kinds = sorted({type(quirk).__name__ for quirk in profile.quirks})
    if kinds:
        yield f"from antiphon_providers.quirks import {', '.join(kinds)}"
    yield ""
    yield "PROFILE = Profile("
    yield f"    {_literal(profile.name)},"
    for one in fields(profile):
        value = getattr(profile, one.name)
        if one.name in ("name", "evidence") or value == getattr(DEFAULT, one.name):
            continue
        said = f"  # {why[one.name]}" if one.name in why else ""
        yield f"    {one.name}={_literal(value)},{said}"
    yield ")"


def _literal(value: Any) -> str:
    """Return the value as Python, the same each time."""
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False)
        case frozenset():
            held = sorted(map(_literal, value))  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
            return f"frozenset({{{', '.join(held)}}})" if held else "frozenset()"
        case tuple():
            held = [_literal(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
            return f"({', '.join(held)}{',' if len(held) == 1 else ''})"
        case _:
            return repr(value)
