"""What counts as a line of code."""

from __future__ import annotations

import pytest

from .size import BOUND, Size, size_of, sizes

CASES = {
    "nothing": ("", Size()),
    "a docstring alone": ('"""Says.\n\nMore.\n"""\n', Size(0, 4)),
    "a comment and a blank line": ("# why\n\nx = 1  # beside\n", Size(1, 3)),
    "a function": ('def f():\n    """Say."""\n    # why\n    return (\n        1\n    )\n', Size(4, 6, (6,))),
    "a text that is a value": ('x = """a\n\nb"""\n', Size(2, 3)),
    "texts below attributes": ('class A:\n    """Say."""\n    x = 1\n    """Of x."""\n', Size(2, 4)),
    "a function in a function": ("async def f():\n    def g():\n        pass\n", Size(3, 3, (3, 2))),
}


@pytest.mark.parametrize("name", CASES)
def test_counted(name: str) -> None:
    source, expected = CASES[name]
    assert size_of(source) == expected


def test_the_runner_has_short_functions() -> None:
    found = sizes()[" + ".join(BOUND)]
    assert found.lines < found.all
    assert found.median < 10
