"""What a process of the gateway does not log: queries, where callers put keys by mistake, and what was said."""

from __future__ import annotations

import logging

ACCESS = "uvicorn.access"
_TARGET = 2  # among the arguments of an access record: client, method, target, version, status. Source: uvicorn 0.54
LONGEST_PATH = 300  # characters of a path that are logged
CONVERTER = "handler"  # the module that warns of what it reads, with a piece of it; the code says what was wrong


def be_quiet() -> None:
    """Log the code of a warning about a backend's answer without its words, and paths without their queries."""
    for name, cut in ((ACCESS, _without_query), ("antiphon", _without_words)):
        logger = logging.getLogger(name)
        if cut not in logger.filters:
            logger.addFilter(cut)


def _without_query(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple) and len(record.args) > _TARGET:
        target = str(record.args[_TARGET]).partition("?")[0][:LONGEST_PATH]
        record.args = (*record.args[:_TARGET], target, *record.args[_TARGET + 1 :])
    return True


def _without_words(record: logging.LogRecord) -> bool:
    if record.module == CONVERTER and isinstance(record.args, tuple) and record.args:
        record.msg, record.args = "the answer of a backend: %s", (record.args[0],)
    return True
