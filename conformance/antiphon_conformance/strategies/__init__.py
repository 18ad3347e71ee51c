"""Hypothesis strategies for property tests of one's own adapter: chunk streams, and event streams.

What the model says is a `Conversation`. `chunk_streams` draws one, and sends it as some provider might: cut anywhere,
calls interleaved, with oddities that each have a name. What comes out must not depend on that:

    from hypothesis import given
    from antiphon_conformance import check, same_output
    from antiphon_conformance.strategies import chunk_streams

    @given(chunk_streams())
    def test_my_adapter(stream):
        events = list(my_adapter(stream.chunks))
        assert check(events, chunks=stream.chunks).ok
        assert same_output(events, stream.events) == []

`broken_chunk_streams` breaks off, or fails, in ways that have names: an adapter must still end once and truly.
`event_streams` are canonical, whatever reads events must take them; `broken_event_streams` have one fault each, and the
code of the rule that finds it. Both are made without any adapter. Needs the extra `conformance`.
"""

from __future__ import annotations

from antiphon.errors import ExtraMissing

try:
    import hypothesis as _  # noqa: F401 -- all that is below needs it
except ImportError as problem:
    raise ExtraMissing(
        "antiphon_conformance.strategies needs hypothesis: pip install 'antiphon[conformance]'", extra="conformance"
    ) from problem

from .broken import BREAKS, BrokenChunks, broken_chunk_streams
from .conversations import Conversation, Said, conversations
from .events import answer, event_streams
from .faults import FAULTS, BrokenEvents, broken_event_streams
from .manners import ODDITIES, Manner, manner_of
from .sending import ChunkStream, chunk_streams, send

__all__ = [
    "BREAKS",
    "FAULTS",
    "ODDITIES",
    "BrokenChunks",
    "BrokenEvents",
    "ChunkStream",
    "Conversation",
    "Manner",
    "Said",
    "answer",
    "broken_chunk_streams",
    "broken_event_streams",
    "chunk_streams",
    "conversations",
    "event_streams",
    "manner_of",
    "send",
]
