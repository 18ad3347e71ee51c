"""`Probe`: one small request, what it needs, and what is looked at.

A request is written once, as Responses create parameters, and becomes what the API under test takes. What only the
chat API can say stands in `chat`: keys of its body, null for one that is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

LIMIT = 160  # output tokens of an ordinary probe
OVERLONG = 40_000  # words of the prompt that is too long


class Shape(Enum):
    """What is asked beside the one request."""

    ONE = "one request"
    TWIN = "the same without a stream"
    LOOP = "a second turn, with what the first one gave"
    BESIDE = "another at the same time"
    LEAVE = "the client leaves in the middle; then another"


REQUESTS: dict[Shape, int] = {Shape.ONE: 1, Shape.TWIN: 2, Shape.LOOP: 2, Shape.BESIDE: 2, Shape.LEAVE: 4}


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe. `needs` names a feature that a server may do without: it refuses the request, and is not judged."""

    id: str
    title: str
    rules: tuple[str, ...]
    ask: Mapping[str, Any] = field(default_factory=dict[str, Any])
    chat: Mapping[str, Any] = field(default_factory=dict[str, Any])
    shape: Shape = Shape.ONE
    needs: str = ""
    refusal: Literal["", "model", "request", "length"] = ""
    native: Mapping[str, Any] = field(default_factory=dict[str, Any])  # as `chat`, for a Responses server
    chat_only: bool = False
    over_a_second: bool = False  # it is sent just before a whole second, so that the answer goes on in the next
    bare: bool = False  # nothing is asked for beside what is written: no limit, no usage

    @property
    def requests(self) -> int:
        """How many requests it sends at most."""
        return REQUESTS[self.shape]

    @property
    def tokens(self) -> int:
        """About how many tokens it costs at most."""
        prompt = len(repr(self.ask)) + len(repr(self.chat))
        limit: int = self.ask.get("max_output_tokens", LIMIT)
        return self.requests * (prompt // 4 + limit) + (OVERLONG if self.refusal == "length" else 0)
