"""What a case expects, held against the events that came: findings under the codes of the rules that say so in general.

A rule that has the chunks finds most of this by itself. A case decides what a rule must leave open: which call a
fragment belongs to, what of a mixture is said in which order, which code an error has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import assert_never

import msgspec

from .case import (
    CallExpected,
    CustomCallExpected,
    Expected,
    ItemExpected,
    MessageExpected,
    ReasoningExpected,
    UsageExpected,
)
from .events import TERMINALS
from .read import Json, listed, mapping, mappings, quoted, text
from .report import Finding, Level, Report

# why it is incomplete -> the rule that says so
_REASONS = {"max_output_tokens": "END001", "content_filter": "END002"}
# type of item -> the rules that say that there are as many as in the chunks: too few, too many
_COUNTS = {
    "message": ("FTH001", "FTH004"),
    "reasoning": ("FTH003", "FTH004"),
    "function_call": ("FTH002", "FTH004"),
    "custom_tool_call": ("FTH002", "FTH004"),
}


def unmet(expected: Expected, report: Report) -> list[Finding]:
    """Return what is not as expected, without what the rules of the same area found already: it is the same fault."""
    areas = {finding.code[:3] for finding in report.findings}
    at, response = _terminal(report)
    if at is None:
        return []  # STR003 says so
    found = [Finding(code, level, at, message) for code, level, message in _differences(expected, response)]
    return [finding for finding in found if finding.code[:3] not in areas]


def not_failed(report: Report) -> list[Finding]:
    """Return a finding where a response has not failed, though its source raised before any finish_reason."""
    at, response = _terminal(report)
    if at is None or response.get("status") == "failed" or "END009" in report.codes:
        return []
    said = f"the response is {quoted(response.get('status'))}, though the source raised before any finish_reason"
    return [Finding("END009", Level.MUST, at, said)]


def _terminal(report: Report) -> tuple[int | None, Json]:
    """Return the place of the last terminal event, and its response."""
    places = [at for at, event in enumerate(report.events) if event.get("type") in TERMINALS]
    return (places[-1], mapping(report.events[places[-1]].get("response"))) if places else (None, {})


_Difference = tuple[str, Level, str]


def _must(code: str, message: str) -> _Difference:
    return code, Level.MUST, message


def _differences(expected: Expected, response: Json) -> Iterator[_Difference]:
    yield from _ending(expected, response)
    output = mappings(response.get("output"))
    found = list(_kinds(expected.output, output))
    if not found:
        found = [one for item, came in zip(expected.output, output, strict=True) for one in _item(item, came)]
    yield from _first_of_each(found)
    yield from _usage(expected.usage, response.get("usage"))


def _first_of_each(found: Sequence[_Difference]) -> Iterator[_Difference]:
    """Yield the first difference under each code: one cause is one finding."""
    yield from {code: (code, level, message) for code, level, message in reversed(found)}.values()


def _ending(expected: Expected, response: Json) -> Iterator[_Difference]:
    status, reason = response.get("status"), mapping(response.get("incomplete_details")).get("reason")
    code = _REASONS.get(expected.reason or "", "END003" if expected.error else "END009")
    if status != expected.status:
        yield _must(code, f"the response is {quoted(status)}, expected is {expected.status!r}")
    elif reason != expected.reason:
        yield _must(code, f"it is incomplete by {quoted(reason)}, expected is {expected.reason!r}")
    elif expected.error and (told := mapping(response.get("error")).get("code")) != expected.error:
        yield "END003", Level.SHOULD, f"error.code is {quoted(told)}, expected is {expected.error!r}"


def _type(item: ItemExpected) -> str:
    match item:
        case MessageExpected():
            return "message"
        case ReasoningExpected():
            return "reasoning"
        case CallExpected():
            return "function_call"
        case CustomCallExpected():
            return "custom_tool_call"
        case _:
            assert_never(item)


def _kinds(expected: Sequence[ItemExpected], output: Sequence[Json]) -> Iterator[_Difference]:
    """Yield where there are more or fewer items of a type, or where they are in another order."""
    due, came = [_type(item) for item in expected], [text(item.get("type")) for item in output]
    told = f"the output is {' → '.join(came) or 'empty'}, expected is {' → '.join(due) or 'none'}"
    if due == came:
        return
    missing, extra = Counter(due) - Counter(came), Counter(came) - Counter(due)
    for kind in missing or extra:
        yield _must(_COUNTS.get(kind, ("FTH004", "FTH004"))[0 if missing else 1], told)
    if not missing and not extra:
        yield _must("RSN002" if "reasoning" in due else "FTH001", told)


def _item(expected: ItemExpected, came: Json) -> Iterator[_Difference]:
    match expected:
        case MessageExpected():
            yield from _message(expected, came)
            yield from _status(expected.status, came)
        case ReasoningExpected():
            yield from _reasoning(expected, came)
        case CallExpected(name=name, arguments=arguments):
            yield from _call(name, "arguments", arguments, expected.call_id, came)
            yield from _status(expected.status, came)
        case CustomCallExpected(name=name, input=given):
            yield from _call(name, "input", given, expected.call_id, came)
            yield from _status(expected.status, came)
        case _:
            assert_never(expected)


def _status(expected: str, came: Json) -> Iterator[_Difference]:
    if came.get("status") != expected:
        yield _must("END004", f"a {came.get('type')} has status {quoted(came.get('status'))}, expected is {expected!r}")


def _message(expected: MessageExpected, came: Json) -> Iterator[_Difference]:
    content = mappings(came.get("content"))
    parts = [(text(one.get("type")), text(one.get("text")) or text(one.get("refusal"))) for one in content]
    if parts != expected.parts:
        yield _must("FTH001", f"a message has {quoted(parts, 200)}, expected is {quoted(expected.parts, 200)}")
    annotations = [one for part in content for one in mappings(part.get("annotations"))]
    if expected.urls is not None and (urls := [text(one.get("url")) for one in annotations]) != expected.urls:
        yield _must("PRT005", f"the annotations are of {quoted(urls, 200)}, expected are {quoted(expected.urls, 200)}")
    logprobs = [one for part in content for one in mappings(part.get("logprobs"))]
    if expected.tokens is not None and (tokens := [text(one.get("token")) for one in logprobs]) != expected.tokens:
        yield _must("DLT004", f"the logprobs are of {quoted(tokens, 200)}, expected are {quoted(expected.tokens, 200)}")


def _reasoning(expected: ReasoningExpected, came: Json) -> Iterator[_Difference]:
    parts = [*mappings(came.get("summary")), *mappings(came.get("content"))]
    said = "".join(text(one.get("text")) for one in parts)
    if said != expected.text:
        yield _must("FTH003", f"a reasoning item has {quoted(said, 200)}, expected is {quoted(expected.text, 200)}")
    sealed = bool(came.get("encrypted_content"))
    if expected.sealed is not None and sealed != expected.sealed:
        has = "has" if sealed else "has no"
        yield "FTH003", Level.SHOULD, f"a reasoning item {has} encrypted_content, expected is the other"


def _call(name: str, field: str, given: str, call_id: str | None, came: Json) -> Iterator[_Difference]:
    if came.get("name") != name:
        yield _must("FTH002", f"a call is of {quoted(came.get('name'))}, expected is {name!r}")
    elif came.get(field) != given:
        yield _must("FTH002", f"{name} has {field} {quoted(came.get(field), 120)}, expected is {quoted(given, 120)}")
    elif call_id is not None and came.get("call_id") != call_id:
        yield _must("FTH002", f"{name} has call_id {quoted(came.get('call_id'))}, expected is {call_id!r}")


def _usage(expected: UsageExpected | msgspec.UnsetType | None, came: object) -> Iterator[_Difference]:
    if isinstance(expected, msgspec.UnsetType):
        return
    if expected is None:
        if came is not None:
            yield _must("USE004", f"usage is {quoted(came)}, and the chunks gave none")
        return
    usage = mapping(came)
    details = {
        "cached_tokens": mapping(usage.get("input_tokens_details")).get("cached_tokens"),
        "reasoning_tokens": mapping(usage.get("output_tokens_details")).get("reasoning_tokens"),
    }
    due = {key: value for key, value in msgspec.structs.asdict(expected).items() if value is not None}
    told = {key: {**usage, **details}.get(key) for key in due}
    if told != due:
        yield _must("USE001", f"usage has {quoted(told, 160)}, expected is {quoted(due, 160)}")


def truncated_calls(report: Report) -> list[Finding]:
    """Return a finding for a call that counts as complete in a response that does not, though its arguments end early.

    This is what a stream that is broken off must never give: a runner would call the tool with half of its arguments.
    """
    at, response = _terminal(report)
    if response.get("status") == "completed":
        return []  # the source says that it is complete; CAL004 is about that
    calls = [item for item in mappings(listed(response.get("output"))) if item.get("type") == "function_call"]
    bad = [item for item in calls if item.get("status") == "completed" and not _is_json(text(item.get("arguments")))]
    said = "has status 'completed', and its arguments end early"
    return [Finding("END004", Level.MUST, at, f"the call of {text(item.get('name'))} {said}") for item in bad[:1]]


def ends_early(expected: ItemExpected) -> bool:
    """Whether an expected call is complete by its source's word alone: its arguments are no JSON."""
    match expected:
        case CallExpected(arguments=arguments, status="completed"):
            return not _is_json(arguments)
        case _:
            return False


def _is_json(arguments: str) -> bool:
    try:
        msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
