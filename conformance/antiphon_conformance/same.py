"""What two texts, or two whole streams, differ in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from .read import Json, listed, mapping, mappings, text
from .trace import Trace
from .walk import Item


class Stretch(NamedTuple):
    """A stretch of a text that is due. `free` is whether it may be missing: white space between items."""

    text: str
    free: bool = False


def fits(got: str, due: list[Stretch]) -> bool:
    """Whether `got` is all stretches in order, each free one there or not."""
    if got == "".join(stretch.text for stretch in due):
        return True
    places = {0}
    for stretch in due:
        taken = {place + len(stretch.text) for place in places if got.startswith(stretch.text, place)}
        places = taken | places if stretch.free else taken
        if not places:
            return False
    return len(got) in places


class Difference(NamedTuple):
    """`lost` is due and is not there, `extra` is there and is not due, both after `at` characters that agree."""

    at: int
    lost: str
    extra: str

    @property
    def repeats(self) -> bool:
        """Whether nothing is lost, and what is there too much is only said again."""
        return not self.lost and bool(self.extra)


def difference(got: str, due: str) -> Difference:
    """Return where two texts part and meet again."""
    shorter = min(len(got), len(due))
    begin = next((n for n in range(shorter) if got[n] != due[n]), shorter)
    end = next((n for n in range(shorter - begin) if got[-1 - n] != due[-1 - n]), shorter - begin)
    return Difference(begin, due[begin : len(due) - end], got[begin : len(got) - end])


def texts(item: Item, *families: str) -> str:
    """Return what an item says in these families: as it was done, or as its deltas have it where it was not."""
    return "".join(told for family, told in item.texts() if family in families)


def arguments(item: Item) -> str:
    """Return the arguments or input of a call: as it was done, or as its deltas have it."""
    if item.done is not None:
        return text(item.done.get("arguments")) or text(item.done.get("input"))
    return "".join(part.joined for part in item.parts.values())


def same_output(first: Iterable[object], second: Iterable[object]) -> list[str]:
    """Return in what two event streams differ for whoever reads the response; nothing where they are the same output.

    Ids, times, numbers and the cut of deltas do not count. What counts is the ending, and the items in order with
    their texts, names and arguments, statuses and annotations.
    """
    one, other = _output(Trace(first)), _output(Trace(second))
    differing = [key for key in one if key != "items" and one[key] != other[key]]
    found = [f"{key}: {one[key]!r} and {other[key]!r}" for key in differing]
    ours, theirs = one["items"], other["items"]
    if len(ours) != len(theirs):
        found.append(f"{len(ours)} items and {len(theirs)}")
    for n, (a, b) in enumerate(zip(ours, theirs, strict=False)):
        found += [f"item {n}: {key}: {a[key]!r} and {b[key]!r}" for key in a if a[key] != b[key]]
    return found


def _output(trace: Trace) -> dict[str, Any]:
    terminal = trace.terminal
    response = terminal.response if terminal is not None else {}
    usage = mapping(response.get("usage"))
    return {
        "ending": terminal.type if terminal is not None else None,
        "reason": mapping(response.get("incomplete_details")).get("reason"),
        "error": mapping(response.get("error")).get("code"),
        "usage": [usage.get(key) for key in ("input_tokens", "output_tokens", "total_tokens")],
        "items": [_item(item) for item in trace.items],
    }


def _item(item: Item) -> dict[str, Any]:
    """Return what a reader sees of an item."""
    said: Json = item.said
    return {
        "type": item.type,
        "status": said.get("status"),
        "name": said.get("name"),
        "arguments": arguments(item) if item.type.endswith("call") else "",
        "text": texts(item, "output_text"),
        "refusal": texts(item, "refusal"),
        "reasoning": texts(item, "reasoning_text", "reasoning_summary_text"),
        "parts": [part.get("type") for part in mappings(said.get("content"))],
        "annotations": [listed(part.get("annotations")) for part in mappings(said.get("content"))],
        "sealed": bool(said.get("encrypted_content")),
    }
