"""llm-rosetta: the pipeline of a Responses client over a chat backend.

Source: llm-rosetta 0.13, `ConversionPipeline`, as its docstring uses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from . import imported

PACKAGE = "llm-rosetta"


def convert(chunks: Iterable[dict[str, Any]]) -> Iterator[Any]:
    """Yield the events that its pipeline makes of `chunks`."""
    pipeline = imported("llm_rosetta.pipeline", PACKAGE).ConversionPipeline("openai_responses", "openai_chat")
    pipeline.convert_request({"model": "case-model", "input": "Hi", "stream": True})
    processor = pipeline.create_stream_processor()
    for chunk in chunks:
        yield from processor.process_chunk(chunk)
