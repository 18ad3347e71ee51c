"""`Fact`: what a native event can say, as a closed union. `item` is the item's number in order of appearance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from antiphon.stream.endings import Terminal
from antiphon.stream.faults import Fault

Json: TypeAlias = dict[str, Any]
Head: TypeAlias = Literal["response.created", "response.queued", "response.in_progress"]


class Spot(NamedTuple):
    """Where text stands: in the part `number`, as the server counts, of the list `parts`; "" is the item itself."""

    parts: Literal["content", "summary", ""]
    number: int
    kind: str  # of the part: "output_text", "refusal", "reasoning_text", "summary_text"


ITSELF = Spot("", 0, "")


@dataclass(frozen=True, slots=True)
class Began:
    """The server tells of the response before its end."""

    head: Head
    response: Json


@dataclass(frozen=True, slots=True)
class Added:
    """An item was announced, or is spoken of for the first time."""

    item: int
    value: Json


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of text, never empty."""

    item: int
    spot: Spot
    text: str
    logprobs: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class Whole:
    """All the text of a spot, of which some or all was said before."""

    item: int
    spot: Spot
    text: str


@dataclass(frozen=True, slots=True)
class Annotated:
    """An annotation of the text at a spot."""

    item: int
    spot: Spot
    annotation: Json


@dataclass(frozen=True, slots=True)
class Aside:
    """Another event about an item, such as the progress of a hosted tool: it passes as it is."""

    item: int
    event: Json


@dataclass(frozen=True, slots=True)
class Done:
    """An item as it is at its end."""

    item: int
    value: Json


@dataclass(frozen=True, slots=True)
class Broke:
    """The server reports an error; the response ends, or is about to."""

    fault: Fault


@dataclass(frozen=True, slots=True)
class Ended:
    """The response as it is at its end."""

    terminal: Terminal
    response: Json


@dataclass(frozen=True, slots=True)
class Odd:
    """An event that says nothing that can be carried."""

    said: str


ItemFact: TypeAlias = Said | Whole | Annotated | Aside | Done
Fact: TypeAlias = Began | Added | ItemFact | Broke | Ended | Odd
