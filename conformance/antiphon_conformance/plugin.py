"""The pytest plug-in: counts the cases of `AdapterSuite` at the end of a run, also under xdist.

It imports nothing until then, and says nothing where no such test ran: pytest loads it for every run of everybody.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pytest

MARK = "::test_conformance["


class Tally:
    """The outcomes of the tests of `AdapterSuite`, by suite and case."""

    def __init__(self) -> None:
        self.outcomes: dict[str, dict[str, set[str]]] = {}
        self.reasons: dict[str, set[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the outcome of one test; on the side that prints, with xdist too."""
        suite, mark, test = report.nodeid.rpartition(MARK)
        case, _, area = test.removesuffix("]").rpartition("-")
        if not mark or "/" not in case or len(area) != 3 or (report.when != "call" and report.passed):
            return
        self.outcomes.setdefault(suite, {}).setdefault(case, set()).add(report.outcome)
        if report.skipped and isinstance(report.longrepr, tuple):
            self.reasons.setdefault(suite, set()).add(str(report.longrepr[2]).removeprefix("Skipped: "))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a line for each suite."""
        if not self.outcomes:
            return
        from .reports.sums import together

        for suite, cases in self.outcomes.items():
            left_out = sum(outcomes == {"skipped"} for outcomes in cases.values())
            failed = sum("failed" in outcomes for outcomes in cases.values())
            why = f" ({together(sorted(self.reasons[suite]))})" if suite in self.reasons else ""
            terminalreporter.write_line(
                f"antiphon: {suite}: {len(cases)} cases, {len(cases) - left_out} ran, {failed} with findings, "
                f"{left_out} not applicable{why}"
            )


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count, but not in a worker of xdist: what it runs is told to the one that prints."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Tally(), "antiphon-tally")
