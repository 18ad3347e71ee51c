"""`Trace`: one stream of events, read once: what rules look at.

Events become dicts; items and parts are followed through the tables of `grammar`, and what is illegal there is kept
as breaches, which the rules report. Everything here is linear in the number of events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from .events import BY_PART, CALLS, FAMILIES, HEAD, PLACES, TERMINALS, Place
from .grammar import Illegal, State
from .read import Json, mapping, number, plain_all, text
from .said import ProfileFacts, Said, listen
from .walk import Breach, Item, Part, Run, Walk, owed_texts


class Snapshot(NamedTuple):
    """A response as one event has it."""

    at: int
    type: str
    response: Json


# Where response, item and part stay while deltas come.
_WITHIN = (State.RUNNING, State.OPEN, State.OPEN)


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
        self.said: Said | None = None if chunks is None else listen(chunks, profile, done)
        self.items: list[Item] = []
        self.breaches: list[Breach] = []
        self.kinds: dict[str, list[int]] = {}
        for at, kind in enumerate(self.types):
            self.kinds.setdefault(kind, []).append(at)
        self._by_index: dict[int | None, Item] = {}  # the last one of each
        self._by_id: dict[str, Item] = {}
        self._exact: dict[tuple[int | None, str], Item] = {}
        self._response = Walk("response", State.RESUMED if self.resumed else State.START)
        self._still_open: set[int] = set()
        self._walk()

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
    def texts(self) -> Sequence[tuple[str, str]]:
        """Every text of a part, with its family: item by item, as each was done or else as its deltas have it."""
        return [told for item in self.items for told in item.texts()]

    def parts(self) -> Iterator[tuple[Item, Part]]:
        """Yield every part with its item, in order of appearance."""
        return ((item, part) for item in self.items for part in item.parts.values())

    # The walk

    def _walk(self) -> None:
        run: Run | None = None
        for at, (kind, event) in enumerate(zip(self.types, self.events, strict=True)):
            place = PLACES.get(kind)
            if place is None:
                continue
            if run is not None and place is run.place and run.goes_on(event):
                run.part.take(event)
                continue
            run = None
            about_item = place.about != "response"
            if not about_item or self._response.state is not State.RUNNING:  # where items move nothing
                self._step_response(at, place, event)
            if about_item:
                run = self._step_item(at, place, event)
        for item in self.items:
            item.settle()

    def _step_response(self, at: int, place: Place, event: Json) -> None:
        role = place.role if place.about == "response" else "item"
        before = self._response.state
        if before is State.ENDED and role == "item" and self._late(place, event):
            return
        illegal = self._response.step(role)
        if illegal:
            self._note(at, self._response, illegal)
        if self._response.state is State.ENDED and before is not State.ENDED:
            self._still_open = {id(item) for item in self.items if item.open}

    def _late(self, place: Place, event: Json) -> bool:
        """Whether this is the done of an item that was open at the terminal event: ITM006 says so."""
        found = self._find(place, number(event.get("output_index")), _id_of(place, event))
        return place.role == "done" and id(found) in self._still_open

    def _step_item(self, at: int, place: Place, event: Json) -> Run | None:
        """Move the item, and the part, that an event is about. Return the run of deltas that it may begin."""
        index, name = number(event.get("output_index")), _id_of(place, event)
        item = self._find(place, index, name) or self._new(at, index, name)
        unfit = self._fit(at, place, item, index, name)
        role = place.role if place.about == "item" else "event"
        part = self._part(at, place, item, event) if place.about == "part" else None
        forgiven = part is not None and place.role in part.walk.owed
        illegal = item.walk.step(role)
        if illegal and not forgiven and not unfit:
            self._note(at, item.walk, illegal, item)
        if part is not None:
            self._step_part(at, place, item, part, event)
        elif role == "added":
            self._announce(at, item, event)
        elif role == "done":
            self._close(at, item, event)
        return self._run(place, item, part, event) if part is not None and place.role == "delta" and not unfit else None

    def _run(self, place: Place, item: Item, part: Part, event: Json) -> Run | None:
        """Return the run that a delta begins, None where the next one like it would be more than the next one."""
        states = (self._response.state, item.walk.state, part.walk.state)
        if states != _WITHIN or place.family != part.family:
            return None
        return Run(place, part, event.get("output_index"), event.get("item_id"), event.get(place.numbered_by))

    def _note(
        self, at: int, walk: Walk, illegal: tuple[State, Illegal], item: Item | None = None, part: str = ""
    ) -> None:
        before, move = illegal
        about = f" about {part}{item.label()}" if item is not None else ""
        message = f"`{self.types[at]}`{about} came when {before.value}; allowed then: {walk.allowed(before)}"
        self.breaches.append(Breach(move.code or walk.code, at, message, -1 if item is None else item.first_at))

    # Items

    def _find(self, place: Place, index: int | None, name: str) -> Item | None:
        """Return the item that an event is about: by index and id, else by what fits one that is open."""
        here = self._by_index.get(index)
        exact = self._exact.get((index, name)) if name else here
        if exact is not None:
            return exact
        if place.role == "added" and place.about == "item":
            return here if here is not None and not here.announced else None
        named = self._by_id.get(name) if name else None
        candidates = [item for item in (here, named) if item is not None]
        return next((item for item in candidates if item.open), candidates[0] if candidates else None)

    def _new(self, at: int, index: int | None, name: str) -> Item:
        item = Item(index, name, Walk("item", State.RESUMED if self.resumed else State.UNSEEN), at)
        self.items.append(item)
        self._place(item, index, name)
        return item

    def _place(self, item: Item, index: int | None, name: str) -> None:
        """Let events find the item by this index and this id."""
        self._by_index[index] = self._by_id[name] = item
        self._exact[index, name] = item

    def _fit(self, at: int, place: Place, item: Item, index: int | None, name: str) -> bool:
        """Keep where the index or id of an event is not that of its item, and return whether that is so.

        An id that changes at `done` is ITM005's, which compares the two items.
        """
        if item.output_index is None and index is not None:
            item.output_index = index
            self._place(item, index, item.id)
        if index is not None and item.output_index is not None and index != item.output_index:
            crossed = _crossed(place, item, self._by_index.get(index))
            code = "ITM005" if place.role == "done" else "CAL003" if crossed else "ITM004"
            item.misfit(at, code, f"{item.label()} is at output_index {item.output_index}, not {index}")
            return True
        if name and item.id and name != item.id and (place.about == "part" or place.role == "event"):
            crossed = _crossed(place, item, self._by_id.get(name))
            message = f"the item at output_index {index} is {item.label()}, not {name}"
            item.misfit(at, "CAL003" if crossed else "ITM004", message)
            return True
        return False

    def _announce(self, at: int, item: Item, event: Json) -> None:
        if item.announced:
            return
        item.added_at, item.added = at, mapping(event.get("item")) or None
        name = text(mapping(item.added).get("id"))
        if item.id != name:
            item.id = name
            self._place(item, item.output_index, name)

    def _close(self, at: int, item: Item, event: Json) -> None:
        if item.done_at is not None:
            return
        item.done_at, item.done = at, mapping(event.get("item")) or None
        for name in owed_texts(item):
            if not any(part.family == name for part in item.parts.values()) and not self.resumed:
                item.parts[name, 0] = self._make_part((name, 0), name, at, item)
        lost = any(part.has_parts and part.added is None for part in item.parts.values())
        for part in item.parts.values():
            illegal = part.walk.step("item_done")
            # Where one part was never added, what is missing is most likely told under another part's number.
            if illegal and not (lost and part.has_parts and (part.added is None or not part.deltas)):
                missing = " and ".join(role for role in illegal[1].owed)
                message = f"{item.label()} is done, but {_part_label(part)} had no {missing}"
                self.breaches.append(Breach(part.walk.code, at, message, item.first_at))

    # Parts

    def _part(self, at: int, place: Place, item: Item, event: Json) -> Part:
        space = place.numbered_by or place.family
        given = number(event.get(place.numbered_by)) if place.numbered_by else 0
        if given is None:
            known = item.in_space(space)
            given = known[-1].key[1] if known else 0
        key = (space, given)
        if key not in item.parts:
            item.parts[key] = self._make_part(key, place.family, at, item)
        return item.parts[key]

    def _make_part(self, key: tuple[str, int], family: str, at: int, item: Item) -> Part:
        # What is said of an item that was not announced, ITM004 says; its parts are taken as they come.
        known = item.announced
        table = FAMILIES[family].table if family else "part"
        start = State.UNSEEN if known else State.RESUMED
        return Part(key, Walk(table, start), at, family, whole=known or not self.resumed)

    def _step_part(self, at: int, place: Place, item: Item, part: Part, event: Json) -> None:
        illegal = part.walk.step(place.role)
        if illegal:
            self._note(at, part.walk, illegal, item, f"{_part_label(part)} of ")
        if place.family and place.family != part.family and place.role != "annotation":
            part.foreign = part.foreign or (at, place.family) if part.family else None
            part.family = part.family or place.family
        match place.role:
            case "added" if part.added is None:
                part.added = mapping(event.get("part"))
                part.family = BY_PART.get(text(part.added.get("type")), part.family)
            case "delta":
                part.take(event)
            case "annotation":
                part.annotate(at, event)
            case "text_done" if part.text_done is None:
                part.text_done_at, part.text_done = at, event
                told = event.get(FAMILIES[place.family].text)
                part.done_text = told if isinstance(told, str) else None
            case "part_done" if part.done is None:
                part.done_at, part.done = at, mapping(event.get("part"))
            case _:
                pass


def _id_of(place: Place, event: Json) -> str:
    """Return the id of the item that an event names, "" where it names none."""
    if place.about == "item" and place.role in ("added", "done"):
        return text(mapping(event.get("item")).get("id"))
    return text(event.get("item_id"))


def _crossed(place: Place, item: Item, other: Item | None) -> bool:
    """Whether a fragment of one call's arguments names another call too."""
    return place.family in FAMILIES and item.type in CALLS and other is not None and other.type in CALLS


def _part_label(part: Part) -> str:
    """Return how a message names a part."""
    space, n = part.key
    return f"{space} {n}" if space.endswith("_index") else f"its {space}"
