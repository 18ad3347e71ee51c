"""The mutants: every way in which a good event stream is broken in one place, and every harmless change.

`KINDS` are breaches of the grammar: the rules must report each. `HARMLESS` are changes that unedited recordings of
the real API show, or that say the same in other pieces: no MUST rule may report them. Both are made of good streams:
they end with a terminal event, and every item of theirs is announced, done and in the terminal output.
`chunks_of` returns chunks that say what an event stream says; `CHUNK_KINDS` let the chunks say something else.
"""

from __future__ import annotations

from .calls import CALL_KINDS
from .chunks import CHUNK_KINDS, chunks_of
from .endings import END_KINDS
from .fields import FIELD_KINDS
from .harmless import HARMLESS
from .items import ITEM_KINDS
from .order import ORDER_KINDS
from .parts import EXTRA_KINDS, PART_KINDS
from .response import HEAD_KINDS, NUMBER_KINDS
from .ways import Kind
from .words import Event, Events

KINDS: tuple[Kind, ...] = (
    *ORDER_KINDS,
    *HEAD_KINDS,
    *NUMBER_KINDS,
    *ITEM_KINDS,
    *PART_KINDS,
    *EXTRA_KINDS,
    *CALL_KINDS,
    *END_KINDS,
    *FIELD_KINDS,
)

__all__ = ["CHUNK_KINDS", "HARMLESS", "KINDS", "Event", "Events", "Kind", "chunks_of"]
