"""HAR: the suite itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from antiphon_conformance.rule import Found, Level, Schema, rule


@rule(
    "HAR001",
    "cases-are-valid",
    Level.SHOULD,
    since="1.0",
    sources=(Schema("cases/schema.json"),),
    about="cases",
)
def cases_are_valid(problems: Iterable[str]) -> Iterator[Found]:
    """The chunks and the expectation of a case are valid: where they are not, the suite is wrong, never the adapter."""
    yield from (Found(None, problem) for problem in problems)
