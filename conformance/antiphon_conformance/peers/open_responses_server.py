"""open-responses-server: the conversion of its server.

Source: open-responses-server 0.4, `process_chat_completions_stream`, which reads the lines of an httpx response.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

from . import imported

PACKAGE = "open-responses-server"


@dataclass(frozen=True, slots=True)
class _Answer:
    """What it reads of an HTTP answer."""

    chunks: AsyncIterator[bytes]

    async def aiter_lines(self) -> AsyncIterator[str]:
        async for chunk in self.chunks:
            for line in chunk.decode().splitlines():
                yield line


async def convert(chunks: AsyncIterator[bytes]) -> AsyncIterator[Any]:
    """Yield the server-sent events that it makes of the body of an answer."""
    service = _service()
    logging.getLogger("api_adapter").setLevel(logging.WARNING)  # else each chunk is a line on standard error
    async for event in service.process_chat_completions_stream(_Answer(chunks), {"messages": []}):
        yield event


@cache
def _service() -> Any:
    """Return the module that converts. Importing it makes a folder for its log where one stands, so it stands elsewhere."""
    with TemporaryDirectory() as folder, chdir(folder):
        return imported("open_responses_server.responses_service", PACKAGE)
