"""The options of `antiphon check`: how each is given, and what its help says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

FILES = "What is written"
LIVE = "A server"
CHOICE = "What is run"

Target: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="MODULE:NAME", help="A Python adapter: what takes chunks and gives events.", show_default=False
    ),
]
Exec: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--exec",
        metavar="COMMAND",
        help="A process: a case a line in, events a line out, an empty line ends.",
        show_default=False,
    ),
]
Recordings: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Streams of events in a folder or file, with NAME.chunks.jsonl beside.",
        show_default=False,
    ),
]
Baseline: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Known deviations, in TOML.", show_default=False, rich_help_panel=CHOICE),
]
Has: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WORDS",
        help="What the adapter has, such as tools,reasoning; or all. May be given again.",
        show_default=False,
        rich_help_panel=CHOICE,
    ),
]
Case: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ID",
        help="Only this case, or this folder of cases; * is anything. May be given again.",
        show_default=False,
        rich_help_panel=CHOICE,
    ),
]
Area: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="AREA",
        help="Only rules of this area, such as ITM. May be given again.",
        show_default=False,
        rich_help_panel=CHOICE,
    ),
]
Cases: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Cases of your own, in the place of the suite's.",
        show_default=False,
        rich_help_panel=CHOICE,
    ),
]
Forms: TypeAlias = Annotated[
    bool, typer.Option("--forms/--no-forms", help="Run each case in its derived forms too.", rich_help_panel=CHOICE)
]
Chunks: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="STYLE",
        help="How the adapter takes chunks: dict, openai or sse; tried, where it is not said.",
        show_default=False,
        rich_help_panel=CHOICE,
    ),
]
Timeout: TypeAlias = Annotated[
    float, typer.Option(metavar="SECONDS", help="What one case may take.", rich_help_panel=CHOICE)
]
Strict: TypeAlias = Annotated[bool, typer.Option("--strict", help="SHOULD counts as MUST.", rich_help_panel=CHOICE)]
Requirements: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="VERSION",
        help="Exactly the rules of that version of the suite, such as 1.0.",
        show_default=False,
        rich_help_panel=CHOICE,
    ),
]
AsJson: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--json",
        help="JSON lines on standard output: each finding as it happens, then a sum.",
        rich_help_panel=FILES,
    ),
]
Everything: TypeAlias = Annotated[
    bool,
    typer.Option("--all", help="Show what is only MAY, and each case that did not apply.", rich_help_panel=FILES),
]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.", rich_help_panel=FILES)]
Jsonl: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write JSON lines.", show_default=False, rich_help_panel=FILES)
]
Junit: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write JUnit XML.", show_default=False, rich_help_panel=FILES)
]
Markdown: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write Markdown.", show_default=False, rich_help_panel=FILES)
]
Html: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write one page of HTML.", show_default=False, rich_help_panel=FILES),
]
Url: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The base URL of a server, such as http://localhost:8000/v1.",
        show_default=False,
        rich_help_panel=LIVE,
    ),
]
Model: TypeAlias = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME",
        help="The model to ask; else the first that is listed.",
        show_default=False,
        rich_help_panel=LIVE,
    ),
]
Api: TypeAlias = Annotated[
    str, typer.Option(metavar="API", help="What the server speaks: chat or responses.", rich_help_panel=LIVE)
]
Profile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The profile of the provider; else it is found out.",
        show_default=False,
        rich_help_panel=LIVE,
    ),
]
Probe: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Only this probe; * is anything. May be given again.",
        show_default=False,
        rich_help_panel=LIVE,
    ),
]
Record: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Write every raw stream there, without keys.",
        show_default=False,
        rich_help_panel=LIVE,
    ),
]
Replay: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Judge what --record wrote; nothing is sent.",
        show_default=False,
        rich_help_panel=LIVE,
    ),
]
ApiKeyEnv: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The environment variable that holds the key; else OPENAI_API_KEY.",
        show_default=False,
        rich_help_panel=LIVE,
    ),
]
Budget: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="LIMITS",
        help="What a run may cost, such as requests=40,tokens=20000,seconds=300.",
        show_default=False,
        rich_help_panel=LIVE,
    ),
]
