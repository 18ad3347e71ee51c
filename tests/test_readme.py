"""Every example in the README and in `docs/` runs, and prints what it says it prints.

A `python` block is run after those before it in the same file, and `chunks` are there from the beginning; its `# -> …`
comments are its whole output, line by line. A `console` block is run in bash, in one folder a file; the lines under a
`$ …` are its output, in which `…` stands for anything. Blocks of other kinds (`sh`: what needs a network or an
installation) are not run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

import antiphon
import antiphon_conformance
from antiphon.cli import app, entries
from antiphon.stream.endings import FINISHES
from antiphon.stream.handler import Options

from . import names

ROOT = Path(__file__).resolve().parents[1]
FILES = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if path.is_file()]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^\s*# -> ?(.*)$", re.MULTILINE)
CHUNKS = [{"choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}]}]
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


class Block(NamedTuple):
    """A fenced block: the line on which its text begins, its language, its text."""

    line: int
    kind: str
    text: str


def blocks(path: Path, kind: str) -> list[Block]:
    document = path.read_text(encoding="utf-8")
    found = BLOCK.finditer(document)
    return [Block(document.count("\n", 0, m.start(2)) + 1, m[1], m[2]) for m in found if m[1] == kind]


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with the output that it should have."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def fits(printed: str, expected: str) -> bool:
    pattern = re.escape(tidy(expected)).replace("…", ".*")
    return re.fullmatch(pattern, tidy(printed), re.DOTALL) is not None


def tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


# page -> the package that its examples need, beyond those that the tests do
NEEDS = {"docs/from-openai-agents.md": "agents", "docs/mcp.md": "mcp"}


@pytest.mark.parametrize("path", FILES, ids=named)
def test_python_blocks(path: Path) -> None:
    if named(path) in NEEDS:
        pytest.importorskip(NEEDS[named(path)], reason="the page is for those who have that package")
    names: dict[str, Any] = {"__name__": "__main__", "chunks": CHUNKS}
    for block in blocks(path, "python"):
        out = StringIO()
        code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")
        with redirect_stdout(out):
            exec(code, names)
        assert out.getvalue().splitlines() == PRINTED.findall(block.text), f"{path.name}, line {block.line}"


@pytest.mark.parametrize("path", FILES, ids=named)
@pytest.mark.skipif(sys.platform == "win32", reason="the examples are for bash")
def test_console_blocks(path: Path, tmp_path: Path) -> None:
    here = sysconfig.get_path("scripts")
    env = {
        **os.environ,
        "PATH": f"{here}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
        "PYTHONIOENCODING": "utf-8",
    }
    for block in blocks(path, "console"):
        for command, expected in commands(block.text):
            printed = subprocess.run(
                ["bash", "-c", command],
                cwd=tmp_path,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=120,
            ).stdout.decode()
            assert fits(printed, expected), f"{path.name}, line {block.line}: {command}\n{printed}"


@pytest.mark.parametrize("path", FILES, ids=named)
def test_links_lead_somewhere(path: Path) -> None:
    links = LINK.findall(path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_the_pages_of_the_api_name_all_that_is_public() -> None:
    page = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("api.md", "names.md"))
    public = [*antiphon.__all__, *antiphon_conformance.__all__, *Options.__annotations__]
    assert [name for name in public if not re.search(rf"\b{name}\b", page)] == []


def test_the_page_of_names_is_current() -> None:
    assert (ROOT / "docs" / "names.md").read_text(encoding="utf-8") == names.text(), "run python -m tests.names"


def test_the_page_of_endings_has_all_finish_words() -> None:
    page = (ROOT / "docs" / "endings.md").read_text(encoding="utf-8")
    assert [word for word in FINISHES if f"`{word}`" not in page] == []


@pytest.mark.parametrize("command", sorted(entries()))
def test_the_command_page_names_all_options(command: str) -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    section = page.partition(f"## antiphon {command}")[2].partition("\n## ")[0]
    asked = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    options = set(re.findall(r"(?<![\w-])--[a-z-]+", asked.stdout.partition("╭─")[2])) - {"--help"}
    assert sorted(option for option in options if f"`{option}" not in section) == []


def test_there_are_examples_to_run() -> None:
    readme = ROOT / "README.md"
    assert len(blocks(readme, "python")) >= 4
    assert len(blocks(readme, "console")) >= 2
