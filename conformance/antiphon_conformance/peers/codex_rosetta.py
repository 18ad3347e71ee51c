"""codex-rosetta: the converter of its proxy.

Source: codex-rosetta 0.1, `StreamConverter`, whose proxy calls `flush_buffer` and `finalize` at the end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from . import imported

PACKAGE = "codex-rosetta"


async def convert(chunks: AsyncIterator[bytes]) -> AsyncIterator[Any]:
    """Yield the events that its converter makes of the body of an answer."""
    context = imported("codex_rosetta.models.common", PACKAGE).ConversionContext(
        response_id="resp_1", model="case-model"
    )
    converter = imported("codex_rosetta.converters.stream_converter", PACKAGE).StreamConverter(context)
    async for chunk in chunks:
        async for _, event in converter.process_chunk(chunk):
            yield event
    async for _, event in converter.flush_buffer():
        yield event
    async for _, event in converter.finalize():
        yield event
