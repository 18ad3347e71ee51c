"""`antiphon rules`: the list of all rules, or of some."""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from antiphon.errors import BadInput

if TYPE_CHECKING:
    from antiphon_conformance import Rule

NOTHING_THERE = 3
STYLES = {"MUST": "bold red", "SHOULD": "yellow", "MAY": "dim"}


def rules(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORD", help="An area (ITM), a code, or words that are in the rule.", show_default=False
        ),
    ] = None,
    level: Annotated[
        Literal["must", "should", "may"] | None, typer.Option(help="Only rules of this strength.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, one for each rule.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The page of the documentation.")] = False,
) -> None:
    """List the rules: of an event stream, of a chat backend's chunk stream, of the suite.

    Exits 0, 2 on bad use, 3 if no rule is like that.
    """
    if as_json and markdown:
        raise BadInput("--json and --markdown cannot both be")
    found = chosen(words or (), level)
    if not found:
        typer.echo(f"no rule is like that{_near(words or ())}; `antiphon rules` lists all", err=True)
        raise typer.Exit(NOTHING_THERE)
    if as_json:
        for rule in found:
            typer.echo(json.dumps(as_object(rule), ensure_ascii=False))
    elif markdown:
        from antiphon_conformance.documents import rules_page

        typer.echo(rules_page(found), nl=False)
    else:
        _print(found)


def _near(words: Sequence[str]) -> str:
    """Return a hint at the codes, names and areas that are meant by one word."""
    from antiphon_conformance.commands.explain import near_rules

    return near_rules(words[0]) if len(words) == 1 else ""


def chosen(words: Sequence[str], level: str | None) -> tuple[Rule, ...]:
    """Return the rules of the level that fit each of `words`: an area or a code stands for itself alone, any other word
    may be anywhere in a rule's name or text."""
    from antiphon_conformance.rule import every_rule

    wanted = [word.casefold() for word in words]
    known = {name.casefold() for rule in every_rule() for name in (rule.area, rule.code)}
    return tuple(
        rule
        for rule in every_rule()
        if level in (None, rule.level.value.casefold()) and all(_fits(rule, word, known) for word in wanted)
    )


def _fits(rule: Rule, word: str, known: Container[str]) -> bool:
    if word in known:
        return word in (rule.area.casefold(), rule.code.casefold())
    return word in f"{rule.name} {rule.text}".casefold()


def as_object(rule: Rule) -> dict[str, Any]:
    """Return a rule as JSON has it."""
    return {
        "code": rule.code,
        "name": rule.name,
        "level": rule.level.value,
        "about": rule.about,
        "since": rule.since,
        "text": rule.text,
        "needs": [need.value for need in rule.needs],
        "sources": [str(source) for source in rule.sources],
        "broken_by": [one.path for one in rule.broken_by],
    }


def _print(found: Sequence[Rule]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from antiphon_conformance.documents import AREAS, areas_of

    console = Console(highlight=False)
    for area in areas_of(found):
        of_area = [rule for rule in found if rule.area == area]
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
        for name, wraps in (("code", False), ("level", False), ("name", False), ("text", True)):
            table.add_column(name, no_wrap=not wraps, overflow="fold")
        for rule in of_area:
            level = Text(rule.level.value, STYLES[rule.level.value])
            table.add_row(Text(rule.code, "bold"), level, Text(rule.name), Text(rule.text, "dim"))
        console.print(Text(f"{area} {AREAS.get(area, 'others')}", "bold underline"))
        console.print(table)
        console.print()
    counts = [f"{sum(1 for rule in found if rule.level.value == level)} {level}" for level in STYLES]
    console.print(Text(f"{len(found)} rules: {', '.join(counts)} · antiphon explain CODE"))
