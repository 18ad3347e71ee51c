"""agent-wire-proxy: the converter of its proxy.

Source: agent-wire-proxy 0.2, `ResponsesStreamConverter`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from . import imported

PACKAGE = "agent-wire-proxy"


def convert(chunks: Iterable[dict[str, Any]]) -> Iterator[Any]:
    """Yield the server-sent events that its converter makes of `chunks`."""
    converters = imported("agent_wire_proxy.stream_converters", PACKAGE)
    converter = converters.ResponsesStreamConverter(requested_model="case-model", namespace_tools={})
    for chunk in chunks:
        yield from converter.consume(chunk)
    yield from converter.finish()
