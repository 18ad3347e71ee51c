"""What a command lets onto the terminal beside its own words."""

from __future__ import annotations

import logging


def unlogged(name: str | None = None) -> None:
    """Keep what libraries warn of off standard error, where Python writes it if nobody set up a log: those whose loggers
    are below `name`, or all. A log that was set up gets it as before."""
    logging.getLogger(name).addHandler(logging.NullHandler())
    if name is None:
        logging.captureWarnings(True)
