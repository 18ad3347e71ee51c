"""The logger of the package, and a way to see all of it."""

from __future__ import annotations

import logging
import sys

__all__ = ["enable_verbose_stdout_logging", "logger"]

PRINTED = "antiphon.stdout"  # name of the handler that the function below adds
logger = logging.getLogger("antiphon")


def enable_verbose_stdout_logging() -> None:
    """Print all that the package logs, for trying things out; calling it again changes nothing."""
    logger.setLevel(logging.DEBUG)
    if all(one.get_name() != PRINTED for one in logger.handlers):
        printing = logging.StreamHandler(sys.stdout)
        printing.set_name(PRINTED)
        logger.addHandler(printing)
