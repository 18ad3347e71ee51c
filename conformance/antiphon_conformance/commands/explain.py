"""`antiphon explain`: what a rule says, what it rests on, and a good and a broken stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from antiphon.errors import BadInput

if TYPE_CHECKING:
    from antiphon_conformance import Rule


def explain(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="Its code or name, such as ITM001.", show_default=False)],
    examples: Annotated[bool, typer.Option(help="Show a good stream and one that breaks the rule.")] = True,
) -> None:
    """Explain a rule: its text, how strong it is, what it rests on, who breaks, a good and a broken stream.

    Exits 0, 2 if no rule is called so.

    Examples:

    antiphon explain STR001

    antiphon explain created-then-in-progress --no-examples
    """
    from antiphon_conformance import find
    from antiphon_conformance.commands.showing import shown_example

    found = find(rule)
    if found is None:
        raise BadInput(f"no rule is called {rule!r}{near_rules(rule)}")
    for line in _lines(found):
        typer.echo(line)
    if examples:
        for line in shown_example(found.code):
            typer.echo(line)


def near_rules(wanted: str) -> str:
    """Return a hint at codes and names that are close to `wanted`, or at the areas there are."""
    from difflib import get_close_matches

    from antiphon_conformance.rule import every_rule

    areas = dict.fromkeys(one.area for one in every_rule())
    if wanted.upper() in areas:
        return f": it is an area. `antiphon rules {wanted.upper()}` lists its rules"
    names = {name.casefold(): one for one in every_rule() for name in (one.code, one.name)}
    close = [names[name] for name in get_close_matches(wanted.casefold(), names, n=4, cutoff=0.5)]
    if close:
        return "; close to it are " + ", ".join(dict.fromkeys(f"{one.code} {one.name}" for one in close))
    return "; the areas are " + ", ".join(areas)


def _lines(rule: Rule) -> Iterator[str]:
    from textwrap import fill

    from antiphon_conformance import Client

    yield f"{rule.code} {rule.name}"
    yield f"{rule.level.value}, since {rule.since}"
    yield f"\n{fill(rule.text, 100, break_long_words=False, break_on_hyphens=False)}"
    if rule.needs:
        yield "\nNot applicable where " + ", or ".join(need.value for need in rule.needs)
    yield "\nRests on"
    yield from (f"  {source}" for source in rule.sources)
    clients = [source for source in rule.sources if isinstance(source, Client)]
    if clients or rule.broken_by:
        yield "\nWho breaks"
        yield from (f"  {client.name}, where the rule is not kept: {client.place}" for client in clients)
        yield from (f"  a server that does not keep it: {one}" for one in rule.broken_by)
