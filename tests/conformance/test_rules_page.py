"""The page of all rules is current, and `antiphon rules` and `antiphon explain` tell each of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from antiphon_conformance import TABLES
from antiphon_conformance.commands.explain import explain
from antiphon_conformance.commands.rules import rules
from antiphon_conformance.documents import AREAS, diagram, rules_page
from antiphon_conformance.grammar import Illegal
from antiphon_conformance.rule import Rule, every_rule

PAGE = Path(__file__).parents[2] / "docs" / "RULES.md"


def run(command: str, *arguments: str) -> Result:
    """Return what a command gives."""
    import typer

    from antiphon.errors import AntiphonError

    app = typer.Typer(add_completion=False)
    app.command()({"rules": rules, "explain": explain}[command])
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "400"})
    assert result.exception is None or isinstance(result.exception, SystemExit | AntiphonError)
    return result


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == rules_page(), "write it anew: antiphon rules --markdown > docs/RULES.md"


@pytest.mark.parametrize("rule", every_rule(), ids=lambda one: one.code)
def test_the_page_has_all_of_a_rule(rule: Rule) -> None:
    page = rules_page()
    assert f"### {rule.code} {rule.name}\n\n**{rule.level.value}**, since {rule.since}. {rule.text}\n" in page
    assert rule.area in AREAS


def test_the_diagrams_have_each_legal_move_and_no_other() -> None:
    page = rules_page()
    for table, _ in TABLES.values():
        lines = "\n".join(diagram(table))
        assert lines in page
        for state, row in table.items():
            for role, cell in row.items():
                drawn = not isinstance(cell, Illegal) and any(
                    line.startswith(f"    {state.name} --> {cell.name}: ") and role in line.split(": ")[1].split(", ")
                    for line in lines.split("\n")
                )
                assert drawn is not isinstance(cell, Illegal), (state, role)


@pytest.mark.parametrize("rule", [one for one in every_rule() if one.about != "cases"], ids=lambda one: one.code)
def test_each_rule_is_explained_with_a_good_and_a_broken_stream(rule: Rule) -> None:
    shown = run("explain", rule.code)
    assert shown.exit_code == 0
    assert shown.stdout.startswith(f"{rule.code} {rule.name}\n{rule.level.value}, since {rule.since}\n")
    good, _, broken = shown.stdout.partition("\nBroken: ")
    assert "\nGood\n" in good
    assert f"\nReported\n  {rule.code} {rule.level.value}" in broken
    assert good.partition("\nGood\n")[2] != broken.partition("\n")[2]
    assert "\nGood\n" not in run("explain", rule.name, "--no-examples").stdout


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        ((), {one.code for one in every_rule()}),
        (("wir",), {"WIR001", "WIR002", "WIR003", "WIR004"}),
        (("ITM001",), {"ITM001"}),
        (("who-leaves",), {"WIR004"}),
        (("cht", "--level", "may"), {"CHT017", "CHT064"}),
    ],
)
def test_rules_are_listed(arguments: tuple[str, ...], codes: set[str]) -> None:
    lines = [json.loads(line) for line in run("rules", *arguments, "--json").stdout.splitlines()]
    assert {one["code"] for one in lines} == codes
    assert all(one["text"] and one["sources"] for one in lines)
    shown = run("rules", *arguments)
    assert all(code in shown.stdout for code in codes)
    assert f"{len(codes)} rules: " in shown.stdout
    page = run("rules", *arguments, "--markdown").stdout
    assert all(f"### {code} " in page for code in codes)


def test_what_cannot_be_listed_is_told() -> None:
    assert (run("rules", "no-such-thing").exit_code, run("rules", "--level", "perhaps").exit_code) == (3, 2)
    assert "cannot both be" in str(run("rules", "--json", "--markdown").exception)
