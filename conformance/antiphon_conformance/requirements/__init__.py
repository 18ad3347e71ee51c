"""What conforming to a version of the suite means: a frozen list of rules for each."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from antiphon.errors import BadInput
from antiphon.near import listing
from antiphon_conformance import SUITE_VERSION


@cache
def required(version: str = "") -> frozenset[str]:
    """Return the codes that count in a version of the suite; "" is this one. Raises BadInput for one that is none."""
    wanted = version or SUITE_VERSION
    file = files(__name__).joinpath(f"{wanted}.toml")
    if wanted not in versions():
        raise BadInput(f"there are no requirements {wanted!r}{listing(wanted, versions(), 'there are')}")
    return frozenset(tomllib.loads(file.read_text("utf-8"))["rules"])


@cache
def versions() -> tuple[str, ...]:
    """Return the versions that there are requirements of."""
    names = (entry.name for entry in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))
