"""`Trace`: one stream of events, read once: what rules look at.

Events become dicts, and a `Walker` follows their items and parts. All that rules ask of the whole stream is found once,
when the first of them asks, and everything here is linear in the number of events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

from .events import CALLS, FAMILIES, HEAD, PLACES, TERMINALS
from .read import Json, mapping, plain_all, text
from .said import SAID_AS, Kind, ProfileFacts, Said, listen
from .walk import Breach, Item, Part
from .walker import Walker

_ROLES = ("text_done", "part_done", "done")
_HOLDING = frozenset((*HEAD, *TERMINALS, *(kind for kind, place in PLACES.items() if place.role in _ROLES)))


JsonKind: TypeAlias = Literal["one", "several", "none"]

# Events are read, and items judged, so many at a time: what is looked at several times in a row is then near at hand, also
# in a stream that is longer than what a processor's caches hold.
AT_ONCE = 256
LONG = 64  # members of a list of parts, annotations or logprobs


class Snapshot(NamedTuple):
    """A response as one event has it."""

    at: int
    type: str
    response: Json


class Items:
    """Some items of a stream, one after another, and their parts: what a rule looks at that judges each item alone."""

    def __init__(self, trace: Trace, items: Sequence[Item]) -> None:
        self.trace, self.items = trace, items

    def illegal(self, code: str) -> list[list[Breach]]:
        """Return the breaches of the tables that belong to this rule and are about these items: those of one together."""
        found = self.trace.breaches_by_item.get(code, {})
        return [found[item.first_at] for item in self.items if item.first_at in found] if found else []

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


class Trace:
    """A stream of events, and what was known beside it.

    `events` are the events as dicts, {} for what is no object; `raw` are they as they came. `request` is the request
    as a dict or None; `said` what the chunks say, None without chunks. `kinds` has for each type of event, in order of
    appearance, the places of the events of that type; `numbers` are their `sequence_number`s, None where there is none;
    `empty` are the places of the deltas that are "".
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
        self.plain: list[Json | None] = []
        self.events: list[Json] = []
        self.types: list[str] = []
        self.numbers: list[object] = []
        self.empty: list[int] = []
        self.kinds: defaultdict[str, list[int]] = defaultdict(list)
        self.request = request
        self.profile = profile
        self.starting_after = starting_after
        self.json_kinds: dict[str, JsonKind] = {}  # what was found out about arguments
        self.said: Said | None = None if chunks is None else listen(chunks, profile, done)
        walker = Walker(self.types, resumed=self.resumed)
        for first in range(0, len(self.raw), AT_ONCE):
            walker.walk(first, *self._read(first))
        self.kinds.default_factory = None  # asking for one that did not come makes none
        self.items, self.breaches = walker.items, walker.breaches

    def _read(self, first: int) -> tuple[list[str], list[Json]]:
        """Return the types of the next events, and these; keep what rules ask of all of them."""
        plain = plain_all(self.raw[first : first + AT_ONCE])
        events: list[Json] = [event or {} for event in plain]
        types = [text(event.get("type")) for event in events]
        deltas = [event.get("delta") for event in events]
        self.plain += plain
        self.events += events
        self.types += types
        self.numbers += [event.get("sequence_number") for event in events]
        self.empty += [at for at, delta in enumerate(deltas, first) if delta == ""] if "" in deltas else []
        for at, kind in enumerate(types, first):
            self.kinds[kind].append(at)
        return types, events

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
        return list(self.breaches_by_item.get(code, {}).values())

    @cached_property
    def breaches_by_item(self) -> Mapping[str, Mapping[int, list[Breach]]]:
        """The breaches of the tables: rule -> place where the item began -> those about it."""
        together: dict[str, dict[int, list[Breach]]] = {}
        for breach in self.breaches:
            together.setdefault(breach.code, {}).setdefault(breach.about, []).append(breach)
        return together

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
    def turns(self) -> Sequence[Kind]:
        """The kinds of what the items tell, calls too, in order; neighbours of one kind are one turn."""
        told: Iterator[Kind] = (kind for item in self.items for kind in _told(item))
        return [kind for kind, _ in groupby(told)]

    @cached_property
    def has_long(self) -> bool:
        """Whether a text has many logprobs or annotations, or an item many parts."""
        parts = (part for item in self.items for part in item.parts.values())
        long = any(len(part.logprobs) >= LONG or len(part.annotations) >= LONG for part in parts)
        return long or any(len(item.parts) >= LONG for item in self.items)

    @property
    def blocks(self) -> Iterator[Items]:
        """All items, some at a time."""
        return (Items(self, self.items[first : first + AT_ONCE]) for first in range(0, len(self.items), AT_ONCE))


def _told(item: Item) -> Iterator[Kind]:
    """Yield the kind of each text of an item that can be seen, or that it is a call."""
    if item.type in CALLS:
        yield "call"
    for part in item.parts.values():
        said = (part.joined or part.done_text) if part.family in SAID_AS else ""
        if said and not said.isspace():
            yield SAID_AS[part.family]


def _own_text(item: Item) -> Part | None:
    """Return the arguments or input of a call."""
    for part in item.parts.values():
        if part.family and FAMILIES[part.family].table == "bare":
            return part
    return None
