"""The events of a run. They live in `antiphon.run.events`."""

from .run.events import (
    AgentUpdatedStreamEvent,
    RawResponsesStreamEvent,
    RunItemStreamEvent,
    StreamEvent,
    ToolProgressStreamEvent,
)

__all__ = [
    "AgentUpdatedStreamEvent",
    "RawResponsesStreamEvent",
    "RunItemStreamEvent",
    "StreamEvent",
    "ToolProgressStreamEvent",
]
