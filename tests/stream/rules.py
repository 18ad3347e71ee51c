"""The conformance rules, as the tests ask them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pytest

Json: TypeAlias = dict[str, Any]


def findings(
    events: Sequence[Json], chunks: Sequence[Any] | None = None, options: Mapping[str, Any] | None = None
) -> list[str]:
    """Return what the rules of strength MUST find, in words. Skips where the rules cannot be loaded."""
    conformance = pytest.importorskip("antiphon_conformance")
    check = getattr(conformance, "check", None)
    if check is None:
        pytest.skip("the conformance rules are not there")
    known = {key: options[key] for key in ("request", "profile") if options and key in options}
    report = check(list(events), chunks=None if chunks is None else list(chunks), **known)
    return [f"{one.code} at {one.index}: {one.message}" for one in report.findings if "MUST" in str(one.level).upper()]
