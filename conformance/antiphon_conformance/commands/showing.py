"""Shows the good and the broken stream of a rule, line by line, with what differs and where it is reported."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from antiphon_conformance.chunks import AnswerTrace
from antiphon_conformance.examples import AnswerExample, EventExample, example_of
from antiphon_conformance.exchange import Exchange
from antiphon_conformance.read import listed, mapping, plain, quoted, text
from antiphon_conformance.report import Report

WIDTH = 110
AROUND = 2  # lines of what is the same that are shown beside what differs


def shown_example(code: str) -> Iterator[str]:
    """Yield the lines of a rule's example; none where it has none."""
    match example_of(code):
        case EventExample(what, good, bad, report):
            lines = [_event_line(event) for event in good], [_event_line(event) for event in bad]
            yield from _both(what, *lines, report)
            yield from _changes(good, bad)
            yield from _found(report, code)
        case AnswerExample(what, good, bad, report):
            yield from _both(what, list(_answer_lines(good)), list(_answer_lines(bad)), report)
            yield from _changes(AnswerTrace(good).values, AnswerTrace(bad).values, "payload")
            yield from _found(report, code)
        case None:
            return


def _both(what: str, good: Sequence[str], bad: Sequence[str], report: Report) -> Iterator[str]:
    """Yield the good lines and the broken ones; what differs is marked."""
    matcher = SequenceMatcher(None, good, bad, autojunk=False)
    changed = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    wrong = {finding.index for finding in report.findings} - {None}
    yield "\nGood"
    yield from _marked(good, {n for _, start, end, _, _ in changed for n in range(start, end)}, "-")
    yield f"\nBroken: {what}"
    yield from _marked(bad, {n for _, _, _, start, end in changed for n in range(start, end)}, "+", wrong)


def _marked(lines: Sequence[str], differ: set[int], sign: str, wrong: set[int | None] | None = None) -> Iterator[str]:
    """Yield the lines that differ and their neighbours; where much is the same, dots."""
    near = {n + step for n in differ for step in range(-AROUND, AROUND + 1)} or set(range(len(lines)))
    skipped = False
    for number, line in enumerate(lines):
        if number in near or number in (wrong or ()) or len(lines) <= 12:
            yield f"  {sign if number in differ else ' '} {line[:WIDTH]}"
            skipped = False
        elif not skipped:
            yield "    …"
            skipped = True


def _changes(good: Sequence[Any], bad: Sequence[Any], name: str = "event") -> Iterator[str]:
    """Yield what differs inside of events that stand at the same place."""
    if len(good) != len(bad):
        return
    found = [
        f"  {name} {at}: {line}"
        for at, (one, other) in enumerate(zip(good, bad, strict=True))
        for line in differences(one, other)
    ]
    if found:
        yield "\nWhat differs"
        yield from (line[:WIDTH] for line in found[:6])
        if len(found) > 6:
            yield f"  … and {len(found) - 6} more"


def differences(one: object, other: object, path: str = "") -> Iterator[str]:
    """Yield the paths at which two values differ, with both."""
    held, new = plain(one), plain(other)
    if held is not None and new is not None:
        for key in [*held, *(key for key in new if key not in held)]:
            place = f"{path}.{key}" if path else key
            if key not in new:
                yield f"{place} is not there; it was {quoted(held[key])}"
            elif key not in held:
                yield f"{place} is {quoted(new[key])}; it was not there"
            else:
                yield from differences(held[key], new[key], place)
    elif listed(one) and len(listed(one)) == len(listed(other)):
        for at, pair in enumerate(zip(listed(one), listed(other), strict=True)):
            yield from differences(*pair, f"{path}[{at}]")
    elif one != other or type(one) is not type(other):
        yield f"{path} is {quoted(other)}; it was {quoted(one)}"


def _found(report: Report, code: str) -> Iterator[str]:
    yield "\nReported"
    yield from (f"  {finding}" for finding in report.findings if finding.code == code)


def _event_line(event: object) -> str:
    """Return one event on one line: its type, its places, what it carries."""
    held = plain(event)
    if held is None:
        return quoted(event)
    words = [text(held.get("type")) or "(no type)"]
    words += [
        f"{key.removesuffix('_index')} {held[key]}"
        for key in ("output_index", "content_index", "summary_index")
        if key in held
    ]
    item = mapping(held.get("item"))
    words += [text(item.get("type")), text(item.get("id"))] if item else []
    words += [
        f"{key} {quoted(held[key], 30)}" for key in ("item_id", "delta", "text", "arguments", "input") if key in held
    ]
    return "  ".join(word for word in words if word)


def _answer_lines(exchange: Exchange) -> Iterator[str]:
    """Yield an answer as it comes over the wire: what was asked, the head, the lines of the body; then its fate."""
    asked: Mapping[str, Any] = exchange.request
    shown = {key: value for key, value in asked.items() if key not in ("messages", "model", "tools", "input")}
    yield f"asked: {json.dumps(shown, ensure_ascii=False)}"
    if exchange.status is not None:
        yield f"HTTP {exchange.status}  {', '.join(f'{name}: {value}' for name, value in exchange.headers.items())}"
    for line in exchange.body.decode("utf-8", "replace").splitlines():
        if line.strip():
            yield _shortened(line)
    if exchange.failure:
        yield f"({exchange.failure}: {exchange.message})"
    for name, other in (
        ("without a stream", exchange.twin),
        ("at the same time", exchange.beside),
        ("afterwards", exchange.after),
    ):
        if other is not None:
            yield f"{name}: {f'HTTP {other.status}' if other.status else other.message}, {quoted(other.body.decode('utf-8', 'replace'), 80)}"


def _shortened(line: str) -> str:
    """Return a line of a body without what is the same in every chunk."""
    try:
        held = plain(json.loads(line.removeprefix("data: ")))
    except (ValueError, RecursionError):
        return line
    if held is None or not line.startswith("data: "):
        return line
    usual = {
        "object": "chat.completion.chunk",
        "created": 1767225600,
        "model": "choir-2026",
        "system_fingerprint": "fp_1",
    }
    kept = {key: value for key, value in held.items() if usual.get(key) != value}
    return f"data: {json.dumps(kept, ensure_ascii=False)}"
