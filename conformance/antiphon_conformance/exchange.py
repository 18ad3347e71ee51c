"""`Exchange`: one request to a server and all that came back, as it came: what the rules about answers look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from .chunks import AnswerTrace

Api: TypeAlias = Literal["chat", "responses"]

# How an exchange ended other than by the end of a whole body.
Failure: TypeAlias = Literal[
    "",  # it did not: the body came to its end
    "connect",  # there was no connection
    "broken",  # the connection broke, or what came is no HTTP
    "silent",  # nothing came for too long
    "late",  # it was not complete in time
    "too_long",  # more came than is read
]


class Piece(NamedTuple):
    """A piece of the body as the network gave it, and the seconds from the request to it."""

    at: float
    data: bytes


@dataclass(frozen=True)
class Exchange:
    """One request and its answer.

    `request` is the JSON body that was sent. `status` is None where no answer began. Header names are in lower case;
    no header of the request is kept. `left` is whether the client left on purpose. `refusal` is whether an error was
    asked for: a model that does not exist, a request that is none, a prompt that is too long. `twin` is the answer to
    the same request that was not streamed, `beside` the one that ran at the same time, `after` what was asked next.
    """

    api: Api
    request: Mapping[str, Any]
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    pieces: tuple[Piece, ...] = field(default=(), repr=False)
    failure: Failure = ""
    message: str = ""  # what the failure says
    seconds: float = 0.0
    left: bool = False
    refusal: Literal["", "model", "request", "length"] = ""
    twin: Exchange | None = field(default=None, repr=False)
    beside: Exchange | None = field(default=None, repr=False)
    after: Exchange | None = field(default=None, repr=False)

    @property
    def streamed(self) -> bool:
        """Whether a stream was asked for."""
        return self.request.get("stream") is True

    @cached_property
    def trace(self) -> AnswerTrace:
        """The answer as it is read for the rules: once, whoever looks at it."""
        from .chunks import AnswerTrace

        return AnswerTrace(self)

    @cached_property
    def body(self) -> bytes:
        """The whole body."""
        return b"".join(piece.data for piece in self.pieces)

    @property
    def content_type(self) -> str:
        """The media type of the body, without parameters, in lower case; "" without one."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def answered(self) -> bool:
        """Whether the server took the request: a status of 2xx."""
        return self.status is not None and 200 <= self.status < 300
