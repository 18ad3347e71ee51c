"""Names of tools that are made of names of agents."""

from __future__ import annotations

import logging
import re

logger = logging.getLogger("antiphon")


def function_style(name: str, *, warn_on_whitespace: bool = True) -> str:
    """Return `name` as a function's: lower case, every other character than letters, digits and `_` made a `_`.

    What changes is logged as a warning, case alone excepted, and white space where it is not worth one.
    """
    spaced = re.sub(r"\s", "_", name)
    made = re.sub(r"[^a-zA-Z0-9_]", "_", spaced)
    if made != (name if warn_on_whitespace else spaced):
        logger.warning(
            "the tool name %r has characters that a function's name has not: it is %r; letters, digits and _ stay",
            name,
            made.lower(),
        )
    return made.lower()
