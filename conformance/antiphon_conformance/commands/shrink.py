"""`antiphon shrink`: a recording that breaks a rule, made as small as it can be and still break it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from antiphon.errors import BadInput

from .quiet import unlogged

if TYPE_CHECKING:
    from antiphon_conformance.commands.reading import Reading
    from antiphon_conformance.judged import Judge, Kind, Same
    from antiphon_conformance.shrink import Progress, Shrunk, Size

SMALLEST, STOPPED, NOTHING_BREAKS = 0, 1, 3
ADAPTER_SECONDS = 3.0  # for one try: an adapter that hangs costs this much each time
SHOWN = 14  # values of the result that are printed


def shrink(
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", help="Chunks or events; - is standard input.", show_default=False)
    ],
    rule: Annotated[
        str | None,
        typer.Option(metavar="CODE", help="The rule to keep broken; else the first MUST.", show_default=False),
    ] = None,
    adapter: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME", help="What turns the chunks into events; else antiphon.", show_default=False
        ),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(metavar="NAME", help="The profile for antiphon's own conversion.", show_default=False)
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE|-", help="Else beside FILE, *.shrunk.jsonl.", show_default=False),
    ] = None,
    budget: Annotated[
        str, typer.Option(metavar="TRIES,TIME", help="How much to try: 500, 30s, 2m, or both.")
    ] = "5000,60s",
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object: what was found and how far it got.")
    ] = False,
) -> None:
    """Make a recording as small as it can be and still break the same rule.

    The rule is the same where its finding says the same, and no other MUST may break that was not broken before. What
    is written is one value a line; it can be given to this command, `antiphon convert` and `antiphon lint` again.

    Exits 0 if nothing more can be left out, 1 if it stopped before (budget, Ctrl-C; the best so far is written), 2 on
    bad use, 3 if the recording does not break the rule.

    Examples:

    antiphon shrink session.jsonl --adapter mypackage.stream:convert

    antiphon shrink events.sse --rule ITM001 --budget 30s
    """
    from antiphon_conformance.commands.reading import read
    from antiphon_conformance.shrink import Budget

    unlogged()  # what is odd in a stream would be told anew with each try
    limit = Budget.parse(budget)
    reading = read(file)
    target = _target(file, output)
    with ExitStack() as stack:
        subject = _subject(file, reading, rule, adapter, profile, stack)
        same = _same(subject, reading.values, rule)
        if same is None:
            raise typer.Exit(_nothing(subject, reading.values, rule, as_json))
        shrunk = _shrunk(reading.values, same, subject.kind, limit)
        _write(target, shrunk, reading.done)
        (_tell_json if as_json else _tell)(subject, target, shrunk, same)
    raise typer.Exit(SMALLEST if shrunk.smallest else STOPPED)


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is shrunk, and who says whether it breaks. `again` are the options that say so once more."""

    kind: Kind
    name: str
    judge: Judge
    again: str = ""


def _target(file: str, output: str | None) -> str:
    """Return the file to write. Raises BadInput where that is the one that is read."""
    if output is None:
        return "shrunk.jsonl" if file == "-" else str(Path(file).with_suffix(".shrunk.jsonl"))
    if output != "-" and file != "-" and Path(output).resolve() == Path(file).resolve():
        raise BadInput(f"--output {output} is the recording itself; give another file")
    return output


def _subject(
    file: str,
    reading: Reading,
    rule: str | None,
    adapter: str | None,
    profile: str | None,
    stack: ExitStack,
) -> _Subject:
    """Return what is to be shrunk. Raises BadInput for a file that holds neither chunks nor events."""
    from antiphon_conformance import judged
    from antiphon_conformance.commands.reading import called, no_stream

    values, done = reading.values, reading.done
    kind = judged.kind_of(values)
    if kind is None:
        other = f": it is {said}" if (said := no_stream(reading)) else ""
        raise BadInput(f"{called(file)} holds neither chunks (with `choices`) nor events (with `type`){other}")
    if kind == "events" and (adapter or profile):
        raise BadInput(f"{called(file)} holds events; --adapter and --profile are for chunks")
    if kind == "events":
        return _Subject(kind, "the events", judged.judge_events)
    if rule is not None and _about(rule) == "answers":
        return _Subject(kind, "the chunk stream itself", lambda chunks: judged.judge_answer(chunks, done=done))
    if adapter is None:
        again = f" --profile {profile}" if profile else ""
        return _Subject(kind, "antiphon's conversion", judged.own_judge(profile=profile, done=done), again)
    from antiphon_conformance.adapters import load

    with suppress(FileNotFoundError):  # a folder that was removed under us
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())  # an adapter beside which the command is run
    loaded = load(adapter, seconds=ADAPTER_SECONDS)
    stack.callback(loaded.close)
    return _Subject(kind, adapter, judged.adapter_judge(loaded, done=done), f" --adapter {adapter}")


def _about(rule: str) -> str:
    """Return what a rule is about. Raises BadInput for a rule that is none."""
    from antiphon_conformance import find

    found = find(rule)
    if found is None:
        raise _no_rule(rule)
    return found.about


def _no_rule(rule: str) -> BadInput:
    from antiphon_conformance.commands.explain import near_rules

    return BadInput(f"no rule is called {rule!r}{near_rules(rule)}; `antiphon rules` lists all")


def _same(subject: _Subject, values: Sequence[Any], rule: str | None) -> Same | None:
    """Return the question that is asked of every smaller stream, None where the recording does not break the rule."""
    from antiphon_conformance import Level, find
    from antiphon_conformance.judged import Same

    wanted = find(rule) if rule is not None else None
    if rule is not None and wanted is None:
        raise _no_rule(rule)
    findings, _ = subject.judge(values)
    fitting = [one for one in findings if (one.code == wanted.code if wanted else one.level is Level.MUST)]
    return Same.as_in(subject.judge, fitting[0], findings) if fitting else None


def _nothing(subject: _Subject, values: Sequence[Any], rule: str | None, as_json: bool) -> int:
    """Say that nothing breaks, and what does instead. Returns the exit status."""
    findings, _ = subject.judge(values)
    others = sorted({f"{one.code} ({one.level.value})" for one in findings})
    wanted = f"{rule} is not broken" if rule else "no MUST is broken"
    if as_json:
        typer.echo(json.dumps({"breaks": False, "rule": rule, "others": others}))
        return NOTHING_BREAKS
    hint = f"; there is {', '.join(others)}: choose with --rule" if others else ""
    typer.echo(f"nothing to shrink: in {subject.name} {wanted}{hint or _chunk_hint(subject, values)}")
    return NOTHING_BREAKS


def _chunk_hint(subject: _Subject, values: Sequence[Any]) -> str:
    """Return what the chunks themselves break, where their conversion breaks nothing."""
    from antiphon_conformance.judged import judge_answer

    if subject.kind == "events":
        return ""
    codes = sorted({one.code for one in judge_answer(values)[0]})
    return f"; the chunk stream itself breaks {', '.join(codes)}: --rule {codes[0]}" if codes else ""


def _shrunk(values: Sequence[Any], same: Same, kind: Kind, limit: Any) -> Shrunk:
    """Shrink, and show how far it got where somebody can see it."""
    from rich.console import Console

    from antiphon_conformance.mending import EVENT_PASSES
    from antiphon_conformance.shrink import shrink as search

    console = Console(stderr=True)
    first = EVENT_PASSES if kind == "events" else ()
    if not console.is_terminal:
        return search(values, same, budget=limit, first=first)
    with console.status("shrinking; Ctrl-C keeps the best so far") as status:

        def tell(progress: Progress) -> None:
            status.update(
                f"{progress.stage}: {_sized(progress.size, kind)} after {progress.tries:,} tries (Ctrl-C keeps it)"
            )

        return search(values, same, budget=limit, first=first, tell=tell)


def _sized(size: Size, kind: Kind) -> str:
    return f"{size.values:,} {kind[:-1] if size.values == 1 else kind}, {size.characters:,} characters"


def _lines(shrunk: Shrunk, done: bool) -> Iterator[str]:
    for value in shrunk.stream:
        yield value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if done:
        yield "[DONE]"


def _write(target: str, shrunk: Shrunk, done: bool) -> None:
    text = "".join(f"{line}\n" for line in _lines(shrunk, done))
    if target == "-":
        typer.echo(text, nl=False)
        return
    try:
        Path(target).write_text(text, encoding="utf-8", errors="replace")
    except OSError as problem:
        raise BadInput(f"cannot write {target}: {problem.strerror}; give another with --output") from None


def _tell_json(subject: _Subject, target: str, shrunk: Shrunk, same: Same) -> None:
    finding = same.finding
    told = {
        "breaks": True,
        "rule": finding.code,
        "level": finding.level.value,
        "message": finding.message,
        "index": finding.index,
        "kind": subject.kind,
        "subject": subject.name,
        "before": {"values": shrunk.before.values, "characters": shrunk.before.characters},
        "after": {"values": shrunk.after.values, "characters": shrunk.after.characters},
        "tries": shrunk.tries,
        "smallest": shrunk.smallest,
        "stopped": shrunk.stopped,
        "output": target,
    }
    typer.echo(json.dumps(told), err=target == "-")


def _tell(subject: _Subject, target: str, shrunk: Shrunk, same: Same) -> None:
    from antiphon_conformance import find

    def say(line: str) -> None:
        typer.echo(line, err=target == "-")

    finding = same.finding
    rule = find(finding.code)
    say(f"{finding.code} {rule.name if rule else ''}   {finding.level.value}   {subject.name}")
    where = "the stream" if finding.index is None else f"event {finding.index}"
    say(f"  {where}: {_one_line(finding.message, 300)}")
    say(f"  {_sized(shrunk.before, subject.kind)}  ->  {_sized(shrunk.after, subject.kind)}, in {shrunk.tries:,} tries")
    end = "nothing more can be left out" if shrunk.smallest else f"stopped: {shrunk.stopped}; this is the best so far"
    say(f"  {end}")
    if target != "-":
        _show(shrunk, say)
        say(f"written to {target}; again: antiphon shrink {target} --rule {finding.code}{subject.again}")


def _show(shrunk: Shrunk, say: Callable[[str], None]) -> None:
    for value in shrunk.stream[:SHOWN]:
        say(f"    {_one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), 160)}")
    if len(shrunk.stream) > SHOWN:
        say(f"    … {len(shrunk.stream) - SHOWN:,} more")


def _one_line(text: str, limit: int) -> str:
    from antiphon.timeline import escaped

    return escaped(text if len(text) <= limit else text[: limit - 1] + "…")
