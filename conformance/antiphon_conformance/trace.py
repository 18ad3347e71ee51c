"""`Trace`: one stream of events, read once: what rules look at.

Events become dicts, and a `Walker` follows their items and parts. All that rules ask of the whole stream is found once,
when the first of them asks, and everything here is linear in the number of events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

from .events import CALLS, FAMILIES, HEAD, PLACES, TERMINALS
from .read import Json, mapping, plain_all, text
from .said import SAID_AS, Kind, ProfileFacts, Said, listen
from .walk import Breach, Item, Part
from .walker import Walker

_ROLES = ("text_done", "part_done", "done")
_HOLDING = frozenset((*HEAD, *TERMINALS, *(kind for kind, place in PLACES.items() if place.role in _ROLES)))


JsonKind: TypeAlias = Literal["one", "several", "none"]


class Snapshot(NamedTuple):
    """A response as one event has it."""

    at: int
    type: str
    response: Json


class Trace:
    """A stream of events, and what was known beside it.

    `events` are the events as dicts, {} for what is no object; `raw` are they as they came. `request` is the request
    as a dict or None; `said` what the chunks say, None without chunks. `kinds` has for each type of event, in order of
    appearance, the places of the events of that type.
    """

    def __init__(
        self,
        events: Iterable[object],
        *,
        chunks: Iterable[object] | None = None,
        request: Json | None = None,
        profile: ProfileFacts | None = None,
        starting_after: int | None = None,
        done: bool | None = None,
    ) -> None:
        self.raw = list(events)
        self.plain = plain_all(self.raw)
        self.events: list[Json] = [event or {} for event in self.plain]
        self.types = [text(event.get("type")) for event in self.events]
        self.request = request
        self.profile = profile
        self.starting_after = starting_after
        self.json_kinds: dict[str, JsonKind] = {}  # what was found out about arguments
        self.said: Said | None = None if chunks is None else listen(chunks, profile, done)
        places: defaultdict[str, list[int]] = defaultdict(list)
        for at, kind in enumerate(self.types):
            places[kind].append(at)
        self.kinds: dict[str, list[int]] = dict(places)
        walker = Walker(resumed=self.resumed)
        walker.walk(self.types, self.events)
        self.items, self.breaches = walker.items, walker.breaches

    @property
    def resumed(self) -> bool:
        """Whether the stream is the rest of one that began earlier."""
        return self.starting_after is not None

    @cached_property
    def numbered(self) -> bool:
        """Whether any event has a number; streams from before May 2025 have none."""
        return any("sequence_number" in event for event in self.events)

    def of(self, *types: str) -> Iterator[tuple[int, Json]]:
        """Yield the places and events of these types, in order."""
        for at in sorted(at for kind in set(types) for at in self.kinds.get(kind, ())):
            yield at, self.events[at]

    @cached_property
    def snapshots(self) -> Sequence[Snapshot]:
        """All responses in events, in order; one that is no object is left out."""
        found = ((at, event, event.get("response")) for at, event in self.of(*HEAD, *TERMINALS))
        return [Snapshot(at, self.types[at], mapping(response)) for at, _, response in found if response]

    @property
    def holding(self) -> Sequence[int]:
        """The places of the events that hold what came before: texts, parts, items, responses."""
        return [at for kind, places in self.kinds.items() if kind in _HOLDING for at in places]

    @cached_property
    def head(self) -> Sequence[Snapshot]:
        """The snapshots before the first item."""
        return [one for one in self.snapshots if one.type in HEAD]

    @cached_property
    def terminal(self) -> Snapshot | None:
        """The first terminal event, with {} where its response is no object; None where there is none."""
        return next((Snapshot(at, self.types[at], mapping(e.get("response"))) for at, e in self.of(*TERMINALS)), None)

    @property
    def end(self) -> int | None:
        """The place of the last event, None for an empty stream."""
        return len(self.events) - 1 if self.events else None

    def illegal(self, code: str) -> list[list[Breach]]:
        """Return the breaches of the tables that belong to this rule: those about one item together."""
        together: dict[int, list[Breach]] = {}
        for breach in self.breaches:
            if breach.code == code:
                together.setdefault(breach.about, []).append(breach)
        return list(together.values())

    @cached_property
    def texts(self) -> Mapping[Kind, str]:
        """The texts of all parts by the kind of chunk they come of, joined: item by item, as each was done or else as
        its deltas have it."""
        told: dict[Kind, list[str]] = {"text": [], "refusal": [], "reasoning": []}
        for item in self.items:
            for family, said in item.texts():
                if family in SAID_AS:
                    told[SAID_AS[family]].append(said)
        return {kind: "".join(several) for kind, several in told.items()}

    @cached_property
    def parts(self) -> Sequence[tuple[Item, Part]]:
        """Every part with its item, in order of appearance; also the texts of calls and hosted tools."""
        return [(item, part) for item in self.items for part in item.parts.values()]

    @cached_property
    def numbered_parts(self) -> Sequence[tuple[Item, Part]]:
        """The parts that are added and done, with their items: those of messages and reasoning."""
        return [told for told in self.parts if told[1].has_parts]

    @cached_property
    def calls(self) -> Sequence[tuple[Item, Part | None]]:
        """The calls, each with its arguments or input, None where no event is about them."""
        return [(item, _own_text(item)) for item in self.items if item.type in CALLS]

    @cached_property
    def reasoning(self) -> Sequence[Item]:
        """The reasoning items."""
        return [item for item in self.items if item.type == "reasoning"]


def _own_text(item: Item) -> Part | None:
    """Return the arguments or input of a call."""
    for part in item.parts.values():
        if part.family and FAMILIES[part.family].table == "bare":
            return part
    return None
