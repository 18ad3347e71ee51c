"""`python -m tests.bench.size`: how many lines of code there are, by package, and how long functions are.

A line counts where it is neither blank nor a comment nor part of a docstring. The openai-agents that is installed is
counted alike, without what has no part here (realtime, voice, sandbox).
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[2] / "src" / "antiphon"
BOUND = ("run", "models")  # the runner and its models, which are to stay small together
NOT_OURS = frozenset({"realtime", "voice", "sandbox"})  # of the peer
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Size:
    """`lines` of code, `all` lines of the files, and the length of each function, from `def` to its end."""

    lines: int = 0
    all: int = 0
    functions: tuple[int, ...] = ()

    def __add__(self, other: Size) -> Size:
        return Size(self.lines + other.lines, self.all + other.all, self.functions + other.functions)

    @property
    def median(self) -> float:
        """The length of the function in the middle; 0 where there is none."""
        return statistics.median(self.functions) if self.functions else 0


def size_of(source: str) -> Size:
    """Return the size of a module's source."""
    tree = ast.parse(source)
    told = {line for node in ast.walk(tree) for text in docstrings(node) for line in _lines(text)}
    every = source.splitlines()
    code = [n for n, line in enumerate(every, 1) if line.strip() and not line.strip().startswith("#") and n not in told]
    lengths = [len(_lines(node)) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return Size(len(code), len(every), tuple(lengths))


def docstrings(node: ast.AST) -> Iterator[ast.Expr]:
    """Yield the texts that are no code: the first of a body, and of a class those below its attributes."""
    body = node.body if isinstance(node, Documented) else []
    for place, one in enumerate(body):
        value = one.value if isinstance(one, ast.Expr) and (place == 0 or isinstance(node, ast.ClassDef)) else None
        if isinstance(one, ast.Expr) and isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield one


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def size_in(place: Path, left_out: frozenset[str] = frozenset()) -> Size:
    """Return the size of a module, or of all that are in a folder but for the folders of these names."""
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    kept = [one for one in files if not left_out & set(one.relative_to(place.parent).parts)]
    return sum((size_of(one.read_text("utf-8")) for one in kept), Size())


def sizes() -> dict[str, Size]:
    """Return the sizes of the packages, of the runner's bound, and of the peer where it is installed."""
    packages = {one.name: size_in(one) for one in sorted(ROOT.iterdir()) if (one / "__init__.py").exists()}
    found = {**packages, " + ".join(BOUND): sum((packages[name] for name in BOUND), Size())}
    peer = find_spec("agents")
    if peer is not None and peer.origin is not None:
        found["openai-agents"] = size_in(Path(peer.origin).parent, NOT_OURS)
    return found


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json", action="store_true", help="the same as JSON")
    found = sizes()
    if options.parse_args().json:
        print(
            json.dumps(
                {name: {"lines": one.lines, "all": one.all, "median": one.median} for name, one in found.items()}
            )
        )
        return
    table = Table("package", "lines of code", "all lines", "functions", "median length")
    for name, one in found.items():
        table.add_row(name, f"{one.lines:,}", f"{one.all:,}", f"{len(one.functions):,}", f"{one.median:g}")
    Console().print(table)


if __name__ == "__main__":
    main()
