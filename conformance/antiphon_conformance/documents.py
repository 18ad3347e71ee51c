"""The page of all rules, made from the registry and the tables, so that it says what is checked and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .grammar import TABLES, Illegal, State, Table
from .report import Level
from .rule import Client, Recording, Rule, Schema, every_rule

# The three letters before a number -> what the rules are about.
AREAS: dict[str, str] = {
    "STR": "the response's life",
    "SEQ": "numbering",
    "ITM": "items",
    "PRT": "content and summary parts",
    "DLT": "deltas",
    "CAL": "function calls",
    "RSN": "reasoning",
    "END": "endings",
    "USE": "usage",
    "SCH": "schema",
    "FTH": "faithfulness to the chunks",
    "CHT": "the chunk stream of a backend",
    "WIR": "HTTP and server-sent events",
    "HAR": "the suite itself",
}
# Codes of rules that were withdrawn -> why. They are not used again.
WITHDRAWN: dict[str, str] = {}

_BEGIN = """# The rules

What a stream of Responses events must be, rule by rule, and what a chat backend must send. A rule is a number for
ever: it stands in baselines, in reports and in searches. This page is made from the rules themselves, by
`antiphon rules --markdown`; `antiphon explain CODE` tells one of them with a good and a broken stream.

- **MUST**: a client breaks, or the real API never does so. A breach fails the run.
- **SHOULD**: the published description says so, or the real API does so and no known client depends on it. It warns,
  and fails with `--strict`.
- **MAY**: worth knowing. It is shown with `--all`.

A rule rests on *recordings* of the real API (named by their path in the corpus), on *clients* that break otherwise, or
on the published *schema*; what rests on the schema alone is SHOULD at most. "Broken by" names recordings of other
servers in which the rule is broken.
"""


def rules_page(rules: Sequence[Rule] | None = None) -> str:
    """Return the page as Markdown: all rules, or these."""
    return "\n".join(_page(every_rule() if rules is None else rules))


def _page(rules: Sequence[Rule]) -> Iterator[str]:
    yield _BEGIN
    yield from _summary(rules)
    for area in areas_of(rules):
        yield f"## {area}: {AREAS.get(area, 'others')}\n"
        for rule in rules:
            if rule.area == area:
                yield from _rule(rule)
    if WITHDRAWN:
        yield "## Withdrawn\n"
        yield from (f"- {code}: {why}" for code, why in sorted(WITHDRAWN.items()))


def areas_of(rules: Iterable[Rule]) -> list[str]:
    """Return the areas of rules, in the order of `AREAS`."""
    there = {rule.area for rule in rules}
    return [*(area for area in AREAS if area in there), *sorted(there - AREAS.keys())]


def _summary(rules: Sequence[Rule]) -> Iterator[str]:
    yield "| area | about | MUST | SHOULD | MAY |"
    yield "|---|---|---|---|---|"
    for area in areas_of(rules):
        counts = [sum(1 for rule in rules if rule.area == area and rule.level is level) for level in Level]
        link = f"[{area}](#{area.lower()}-{AREAS.get(area, 'others').lower().replace(' ', '-')})"
        yield f"| {link.replace(chr(39), '')} | {AREAS.get(area, 'others')} | {' | '.join(map(str, counts))} |"
    yield ""


def _rule(rule: Rule) -> Iterator[str]:
    yield f"### {rule.code} {rule.name}\n"
    yield f"**{rule.level.value}**, since {rule.since}. {rule.text}\n"
    if rule.needs:
        yield f"- Not applicable where {', or '.join(need.value for need in rule.needs)}."
    for source in rule.sources:
        match source:
            case Recording(path):
                yield f"- Recording: `{path}`"
            case Client(name, place):
                yield f"- Who breaks otherwise: {name}: {place}"
            case Schema(place):
                yield f"- Published: {place}"
    yield from (f"- Broken by: `{one.path}`" for one in rule.broken_by)
    yield ""
    for name, (table, code) in TABLES.items():
        if code == rule.code:
            yield f"{LIVES[name]}:\n"
            yield from diagram(table)
            yield ""


# --- diagrams ---------------------------------------------------------------------------------------------------------

_STARTS = (State.START, State.UNSEEN)
# The name of a table -> what it is the life of.
LIVES = {
    "response": "The life of a response",
    "item": "The life of an item",
    "part": "The life of a part",
    "bare": "The life of the arguments, or the input, of a call",
    "hosted": "The life of the code, or the arguments, of a hosted tool's call",
}


def diagram(table: Table) -> Iterator[str]:
    """Yield the legal moves of a table as a state diagram (mermaid)."""
    moves: dict[tuple[State, State], list[str]] = {}
    for state, row in table.items():
        for role, cell in row.items():
            if not isinstance(cell, Illegal):
                moves.setdefault((state, cell), []).append(role)
    reached = {to for _, to in moves} | {state for state, _ in moves}
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield from (f"    state {_text(state)} as {state.name}" for state in State if state in reached)
    yield from (f"    [*] --> {state.name}" for state in _STARTS if state in reached)
    for (state, to), roles in moves.items():
        yield f"    {state.name} --> {to.name}: {', '.join(roles)}"
    leaving = {state for state, to in moves if state is not to}
    yield from (f"    {state.name} --> [*]" for state in State if state in reached and state not in leaving)
    yield "```"


def _text(state: State) -> str:
    return f'"{state.value}"'
