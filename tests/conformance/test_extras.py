"""What is asked for and not installed is told by the extra that brings it, before anything else is done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

IMPORTING = "import sys; sys.modules[{package!r}] = None; "
COMMAND = "from antiphon.cli import main; sys.argv[1:] = {arguments!r}; main()"
# what is asked for -> the package that is not there, and what the error says
ASKED: dict[str, tuple[str, str]] = {
    "from antiphon_conformance import AdapterSuite": ("pytest", "AdapterSuite needs pytest"),
    "import antiphon_conformance.suite": ("pytest", "AdapterSuite needs pytest"),
    "import antiphon_conformance.strategies": ("hypothesis", "antiphon_conformance.strategies needs hypothesis"),
    "from antiphon_conformance.strategies import chunk_streams": ("hypothesis", "strategies needs hypothesis"),
}


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("asked", ASKED)
def test_an_import_names_the_extra(asked: str, tmp_path: Path) -> None:
    package, said = ASKED[asked]
    done = python(IMPORTING.format(package=package) + asked, tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("antiphon.errors.ExtraMissing: ")
    assert said in last
    assert last.endswith("pip install 'antiphon[conformance]'")


def test_a_page_that_cannot_be_written_is_told_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def convert(chunks):\n    open('ran', 'w')\n    return []\n")
    arguments = ["check", "mine:convert", "--html", "page.html", "-q"]
    done = python(IMPORTING.format(package="jinja2") + COMMAND.format(arguments=arguments), tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "the HTML report needs jinja2: pip install 'antiphon[conformance]'" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["mine.py"]
