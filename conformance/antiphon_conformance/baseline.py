"""Known deviations of a subject, in TOML: one line excuses one rule in one case, or in any (`*`), and says why.

[[deviation]]
rule = "ITM002"
case = "*"
reason = "one fake id for all items"
issue = "https://…"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from antiphon.errors import BadInput
from antiphon.near import listing, nearest

from .results import Deviation

_HEADER = re.compile(r"^[ \t]*\[\[\s*deviation\s*\]\]", re.MULTILINE)
_KEYS = ("rule", "case", "reason", "issue")


def read_baseline(path: str | Path, *, codes: Iterable[str] | None = None) -> tuple[Deviation, ...]:
    """Return the deviations in a file. `codes` are the rules that there are; None: those of the suite.

    Raises BadInput, with the line, where the file cannot be read, or a line is no deviation.
    """
    try:
        written = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as problem:
        raise BadInput(f"cannot read the baseline {path}: {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        raise BadInput(f"the baseline {path} is no UTF-8: {problem.reason} at byte {problem.start}") from None
    return parse_baseline(written, str(path), codes=codes)


def parse_baseline(written: str, name: str, *, codes: Iterable[str] | None = None) -> tuple[Deviation, ...]:
    """Return the deviations in the text of a baseline; `name` is how messages call it. Raises BadInput."""
    try:
        document = tomllib.loads(written)
    except (ValueError, RecursionError) as problem:  # also of a number of very many digits
        raise BadInput(f"{name} is no TOML: {problem}") from None
    others = sorted(set(document) - {"deviation"})
    if others:
        raise BadInput(f"{name}: {', '.join(others)} is not known; a baseline has [[deviation]] entries only")
    entries = document.get("deviation", [])
    if not isinstance(entries, list):
        raise BadInput(f"{name}: write [[deviation]], with two brackets, so that there may be several")
    lines = [written.count("\n", 0, match.start()) + 1 for match in _HEADER.finditer(written)]
    known = frozenset(codes) if codes is not None else _codes()
    made: list[Deviation] = []
    for n, entry in enumerate(entries):  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
        where = f"{name}:{lines[n]}" if n < len(lines) else f"{name}, deviation {n + 1}"
        made.append(_deviation(entry, where, known))
        if made[-1] in made[:-1] or _place(made[-1]) in map(_place, made[:-1]):
            raise BadInput(f"{where}: {made[-1].rule} in {made[-1].case} is excused twice")
    return tuple(made)


def refuse_unknown(
    baseline: Iterable[Deviation], cases: Collection[str], *, what: str = "case", name: str = "the baseline"
) -> None:
    """Raise BadInput for a line about a case that is none of `cases`: it would never be stale."""
    for one in baseline:
        if one.case != "*" and one.case not in cases:
            close = nearest(one.case, cases, 0.8)
            hint = f"; did you mean {close!r}?" if close else ""
            raise BadInput(f"{name}: {one.rule} is excused in {one.case!r}, and there is no such {what}{hint}")


def _codes() -> frozenset[str]:
    from .rule import every_rule

    return frozenset(rule.code for rule in every_rule())


def _place(deviation: Deviation) -> tuple[str, str]:
    return deviation.rule, deviation.case


def _deviation(entry: Any, where: str, known: frozenset[str]) -> Deviation:
    if not isinstance(entry, dict):
        raise BadInput(f"{where}: a deviation is a table with rule, case and reason")
    given: dict[str, Any] = entry  # pyright: ignore[reportUnknownVariableType]
    unknown = sorted(set(given) - set(_KEYS))
    if unknown:
        raise BadInput(f"{where}: {', '.join(unknown)} is not known{listing(unknown[0], _KEYS, 'there are')}")
    for key in _KEYS:
        if not isinstance(given.get(key, ""), str):
            raise BadInput(f"{where}: {key} is {given[key]!r}, not a text")
    missing = [key for key in ("rule", "case", "reason") if not given.get(key, "").strip()]
    if missing:
        raise BadInput(f"{where}: {' and '.join(missing)} is missing; what is excused has its rule, its case and why")
    if given["rule"] not in known:
        close = nearest(given["rule"], known)
        hint = f"did you mean {close!r}? `antiphon" if close else "`antiphon"
        raise BadInput(f"{where}: there is no rule {given['rule']!r}; {hint} rules` lists them")
    return Deviation(given["rule"], given["case"], given["reason"], given.get("issue", ""))


def excused(baseline: Sequence[Deviation], case: str, codes: Iterable[str]) -> dict[str, Deviation]:
    """Return which of the broken rules the baseline excuses in a case: code -> its line; the exact one goes first."""
    found: dict[str, Deviation] = {}
    for code in codes:
        lines = [one for one in baseline if one.rule == code and one.case in (case, "*")]
        if lines:
            found[code] = next((one for one in lines if one.case == case), lines[0])
    return found


def stale(
    baseline: Sequence[Deviation], ran: Iterable[tuple[str, Iterable[str]]], *, all_ran: bool
) -> tuple[Deviation, ...]:
    """Return the lines that excuse nothing. `ran` are the cases that ran, with the rules that were broken in each.

    A line for `*` is judged only where all cases ran.
    """
    broken: dict[str, set[str]] = {}
    for case, codes in ran:
        broken.setdefault(case, set()).update(codes)
    anywhere = set[str]().union(*broken.values())
    return tuple(
        one
        for one in baseline
        if (
            all_ran and one.rule not in anywhere
            if one.case == "*"
            else one.case in broken and one.rule not in broken[one.case]
        )
    )
