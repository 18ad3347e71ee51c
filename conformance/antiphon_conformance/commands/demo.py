"""`antiphon demo`: the built-in streams of many providers, converted, checked and shown. Needs no key and no network."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from antiphon.errors import BadInput
from antiphon.near import listing

if TYPE_CHECKING:
    from antiphon_conformance.demo_play import Outcome
    from antiphon_conformance.demo_streams import DemoStream

CLEAN, FAULTS, NOTHING_RAN = 0, 1, 3
ALL_SECONDS, ONE_SECONDS = 6.0, 2.0  # what all streams take together at speed 1, and the most that one takes


def demo(
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Play this stream; may be given again.", show_default=False)
    ] = None,
    names: Annotated[bool, typer.Option("--list", help="List the streams and end.")] = False,
    raw: Annotated[
        str | None, typer.Option(metavar="NAME", help="Write the bytes of that stream and end.", show_default=False)
    ] = None,
    fast: Annotated[bool, typer.Option("--fast", help="Do not wait between chunks.")] = False,
    speed: Annotated[float, typer.Option(metavar="N", help="Play N times as fast; 0.2 is for reading along.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line: each stream, then a sum.")] = False,
) -> None:
    """Play built-in chat streams of many providers, each with its real oddities, and check what comes of them.

    Needs no key and no network.

    Exits 0 if every stream ended as it must and said all it must, and no rule was broken, 1 if not, 2 on bad use, 3 if
    no stream could be played.

    Examples:

    antiphon demo

    antiphon demo --only groq-error --speed 0.2

    antiphon demo --raw deepseek | antiphon convert -
    """
    if not speed > 0:
        raise BadInput(f"--speed {speed:g}: it is a number above 0")
    chosen = _chosen([raw] if raw is not None else only or [])
    if raw is not None:
        sys.stdout.buffer.write(chosen[0].body)
        return
    if names:
        _list(chosen, as_json)
        return
    seconds = 0.0 if fast else min(ONE_SECONDS, ALL_SECONDS / len(chosen)) / speed
    raise typer.Exit(_status(_in_json(chosen) if as_json else _on_screen(chosen, seconds)))


def _chosen(names: Sequence[str]) -> list[DemoStream]:
    """Return the streams of these names, all where none is given. Raises BadInput for a name that is none."""
    from antiphon_conformance.demo_streams import demo_streams

    streams = demo_streams()
    known = {stream.name: stream for stream in streams}
    for name in names:
        if name not in known:
            raise BadInput(f"no stream is called {name!r}{listing(name, known, 'there are')}")
    return [known[name] for name in dict.fromkeys(names)] or streams


def _status(outcomes: Sequence[Outcome]) -> int:
    from antiphon_conformance.demo_play import Played

    clean = [one.clean for one in outcomes if isinstance(one, Played)]
    return NOTHING_RAN if not clean else CLEAN if all(clean) else FAULTS


def _on_screen(streams: Sequence[DemoStream], seconds: float) -> list[Outcome]:
    from antiphon_conformance.commands.demo_screen import on_screen

    return on_screen(streams, seconds)


def _list(streams: Sequence[DemoStream], as_json: bool) -> None:
    width = max(len(stream.name) for stream in streams)
    for stream in streams:
        about = {"name": stream.name, "provider": stream.provider, "oddity": stream.oddity}
        typer.echo(json.dumps(about) if as_json else f"{stream.name:<{width}}  {stream.provider}: {stream.title}")


def _in_json(streams: Sequence[DemoStream]) -> list[Outcome]:
    """Play the streams, write a line for each and one that sums up."""
    from antiphon import __version__
    from antiphon_conformance import SUITE_VERSION
    from antiphon_conformance.demo_play import Played, play, silent

    outcomes: list[Outcome] = []
    for stream in streams:
        outcomes.append(play(stream, 0.0, silent))
        typer.echo(json.dumps(_told(outcomes[-1])))
    clean = [one.clean for one in outcomes if isinstance(one, Played)]
    total = {
        "streams": len(outcomes),
        "played": len(clean),
        "clean": sum(clean),
        "ok": bool(clean) and all(clean),
        "suite": SUITE_VERSION,
        "package": __version__,
    }
    typer.echo(json.dumps(total))
    return outcomes


def _told(outcome: Outcome) -> dict[str, Any]:
    """Return what the line of a stream says."""
    from antiphon_conformance.demo_play import NotPlayed, Played, ending_of, response_of

    stream = outcome.stream
    about = {"name": stream.name, "provider": stream.provider, "oddity": stream.oddity, "profile": stream.profile}
    match outcome:
        case NotPlayed(reason=reason):
            return {**about, "played": False, "reason": reason}
        case Played(report=report):
            return {
                **about,
                "played": True,
                "chunks": len(stream.chunks),
                "events": len(report.events),
                "items": outcome.items,
                "ending": ending_of(response_of(report.events)),
                "expected": stream.ending,
                "differences": outcome.differences,
                "findings": [str(finding) for finding in report.findings],
                "rules": len(report.ran),
                "clean": outcome.clean,
            }
