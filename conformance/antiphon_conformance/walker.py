"""`Walker`: follows the response, its items and their parts through the tables of `grammar`.

    types, events -> Walker -> items, breaches

What is illegal is kept as breaches, which the rules report. Linear in the number of events; whatever names the same
item as the event before it, or goes on with the same text, is not looked up again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .events import BY_PART, CALLS, FAMILIES, PLACES, Place
from .grammar import Illegal, State
from .read import Json, mapping, number, text
from .walk import Breach, Item, Part, Run, Walk, owed_texts

# Where response, item and part stay while deltas come.
_WITHIN = (State.RUNNING, State.OPEN, State.OPEN)
WORTH_A_RUN = 3  # deltas of one text


class Walker:
    """One walk over a stream. `items` are all that some event is about, in order of appearance; `types` are the types of
    all events up to those that are walked."""

    def __init__(self, types: Sequence[str], *, resumed: bool) -> None:
        self.items: list[Item] = []
        self.breaches: list[Breach] = []
        self._resumed = resumed
        self._unseen = State.RESUMED if resumed else State.UNSEEN
        self._types = types
        self._by_index: dict[int | None, Item] = {}  # the last one of each
        self._by_id: dict[str, Item] = {}
        self._exact: dict[tuple[int | None, str], Item] = {}
        self._latest: Item | None = None  # what the last event was about, where its index and id find just that
        self._spoken: Part | None = None  # the part that the last delta was of
        self._run: Run | None = None
        self._response = Walk("response", State.RESUMED if resumed else State.START)
        self._still_open: set[int] = set()

    def walk(self, first: int, types: Sequence[str], events: Sequence[Json]) -> None:
        """Follow the next events, of these types; `first` is the place of the first of them."""
        run = self._run
        for at, (kind, event) in enumerate(zip(types, events, strict=True), first):
            place = PLACES.get(kind)
            if place is None:
                continue
            if run is not None and place is run.place and run.goes_on(event):
                run.part.take(event)
                continue
            if place.about == "response" or self._response.state is not State.RUNNING:  # where items move nothing
                self._step_response(at, place, event)
            run = None
            if place.about == "part":
                run = self._step_part(at, place, event)
            elif place.about == "item":
                self._step_item(at, place, event)
        self._run = run

    # The response

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

    # Items

    def _step_item(self, at: int, place: Place, event: Json) -> None:
        """Move the item that an event is about."""
        told = mapping(event.get("item"))
        name = event.get("item_id") if place.role == "event" else told.get("id")
        item, unfit = self._item(at, place, event.get("output_index"), text(name))
        if name == "" and place.role == "event":
            unfit = self._unnamed(at, item) or unfit
        illegal = item.step(place.role)
        if illegal and not unfit:
            self._note(at, item, illegal, item)
        if place.role == "added" and item.added_at is None:
            self._announce(at, item, told or None)
        elif place.role == "done" and item.done_at is None:
            self._close(at, item, told or None)

    def _item(self, at: int, place: Place, index: Any, name: str) -> tuple[Item, bool]:
        """Return the item that an event is about, and whether its index or id are not those of the item."""
        latest = self._latest
        if latest is not None and latest.output_index == index and latest.id == name and index.__class__ is int:
            return latest, False
        return self._look_up(at, place, number(index), name)

    def _look_up(self, at: int, place: Place, index: int | None, name: str) -> tuple[Item, bool]:
        item = self._find(place, index, name)
        plain = index is not None and bool(name)
        if item is None:
            item = self._new(at, index, name)
            self._latest = item if plain else None
            return item, False
        unfit = self._fit(at, place, item, index, name)
        plain = plain and item.output_index == index and item.id == name
        self._latest = item if plain and self._exact.get((index, name)) is item else None
        return item, unfit

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
        item = Item(index, name, self._unseen, at)
        self.items.append(item)
        self._place(item, index, name)
        return item

    def _place(self, item: Item, index: int | None, name: str) -> None:
        """Let events find the item by this index and this id."""
        self._by_index[index] = self._by_id[name] = item
        self._exact[index, name] = item
        self._latest = None

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

    def _unnamed(self, at: int, item: Item) -> bool:
        """Keep where an event gives "" for the id of an item that has one, and return whether that is so."""
        if item.id:
            item.misfit(at, "ITM004", f"`{self._types[at]}` about {item.label()} has an empty item_id")
        return bool(item.id)

    def _announce(self, at: int, item: Item, told: Json | None) -> None:
        item.announce(at, told)
        name = "" if told is None else text(told.get("id"))
        if item.id != name:
            item.id = name
            self._place(item, item.output_index, name)

    def _close(self, at: int, item: Item, told: Json | None) -> None:
        item.close(at, told)
        for name in owed_texts(item):
            known = (name, 0) in item.parts or any(part.family == name for part in item.parts.values())
            if not known and not self._resumed:
                self._make_part((name, 0), name, at, item)
        illegal = [(part, move) for part in item.parts.values() if (move := part.step("item_done")) is not None]
        if illegal:
            self._unclosed(at, item, illegal)

    def _unclosed(self, at: int, item: Item, illegal: Sequence[tuple[Part, tuple[State, Illegal]]]) -> None:
        """Keep the parts that were open when their item was done."""
        lost = any(part.has_parts and part.added is None for part in item.parts.values())
        for part, (_, move) in illegal:
            # Where one part was never added, what is missing is most likely told under another part's number.
            if not (lost and part.has_parts and (part.added is None or not part.deltas)):
                owed = " and no ".join(f"`{part.event(role)}`" for role in move.owed)
                where = f" for {_part_label(part)}" if part.has_parts else ""
                message = f"{item.label()} is done, and no {owed} came{where}"
                self.breaches.append(Breach(part.code, at, message, item.first_at))

    # Parts

    def _step_part(self, at: int, place: Place, event: Json) -> Run | None:
        """Move the part that an event is about, and its item. Return the run of deltas that it may begin."""
        name = event.get("item_id")
        item, unfit = self._item(at, place, event.get("output_index"), text(name))
        if name == "":
            unfit = self._unnamed(at, item) or unfit
        part = self._part(at, place, item, event)
        if item.state is not State.OPEN:  # where events of its parts move nothing
            illegal = item.step("event")
            if illegal and not unfit and place.role not in part.owed:
                self._note(at, item, illegal, item)
        illegal = part.step(place.role)
        if illegal:
            self._note(at, part, illegal, item, f"{_part_label(part)} of ")
        if place.family != part.family and place.family and place.role != "annotation":
            self._take_family(at, item, part, place.family)
        if place.role != "delta":
            self._keep(at, place, item, part, event)
            return None
        part.take(event)
        return None if unfit else self._begun(place, item, part, event)

    def _begun(self, place: Place, item: Item, part: Part, event: Json) -> Run | None:
        """Return the run of which a delta is the last so far, None where the next one would be more than the next one,
        and where there are so few that it is not worth a run."""
        before, self._spoken = self._spoken, part
        if before is not part or len(part.deltas) < WORTH_A_RUN or place.family != part.family:
            return None
        if (self._response.state, item.state, part.state) != _WITHIN:
            return None
        return Run(place, part, event.get("output_index"), event.get("item_id"), event.get(place.numbered_by))

    def _part(self, at: int, place: Place, item: Item, event: Json) -> Part:
        given: Any = event.get(place.numbered_by) if place.numbered_by else 0
        if given.__class__ is not int:
            given = self._number(place, item, given)
        return item.parts.get((place.space, given)) or self._make_part((place.space, given), place.family, at, item)

    def _number(self, place: Place, item: Item, given: object) -> int:
        """Return the number of a part that is not told by a plain one: where it is none, that of the last part."""
        told = number(given)
        if told is not None:
            return told
        known = item.in_space(place.space)
        return known[-1].key[1] if known else 0

    def _make_part(self, key: tuple[str, int], family: str, at: int, item: Item) -> Part:
        # What is said of an item that was not announced, ITM004 says; its parts are taken as they come.
        known = item.announced
        table = FAMILIES[family].table if family else "part"
        start = State.UNSEEN if known else State.RESUMED
        part = item.parts[key] = Part(table, start, key, at, family, whole=known or not self._resumed)
        if family and (item.added is None or item.done is not None):
            item.settle()
        return part

    def _take_family(self, at: int, item: Item, part: Part, family: str) -> None:
        """Keep the kind of text that an event is of, where it is not the part's: as the part's, if it has none."""
        if part.family:
            part.foreign = part.foreign or (at, family)
        else:
            part.foreign, part.family = None, family
            item.settle()

    def _keep(self, at: int, place: Place, item: Item, part: Part, event: Json) -> None:
        """Keep what an event says of a part, but for deltas: what comes first counts."""
        match place.role:
            case "added" if part.added is None:
                part.added = mapping(event.get("part"))
                family = BY_PART.get(text(part.added.get("type")), part.family)
                if family != part.family:
                    part.family = family
                    item.settle()
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

    # Breaches

    def _note(
        self, at: int, walk: Walk, illegal: tuple[State, Illegal], item: Item | None = None, part: str = ""
    ) -> None:
        before, move = illegal
        about = f" about {part}{item.label()}" if item is not None else ""
        message = f"`{self._types[at]}`{about} came when {before.value}; allowed then: {walk.allowed(before)}"
        self.breaches.append(Breach(move.code or walk.code, at, message, -1 if item is None else item.first_at))


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
