"""What a server that speaks the Responses API is sent: a history without what it cannot know.

Items of a chat backend have ids that no server gave. Such a server looks reasoning up by its id, and refuses one that
it does not know, as it refuses encrypted content of others. Messages and calls need no id.
Sources: github.com/vercel/ai/issues/7543 ("Item with id 'rs_…' not found"), github.com/NousResearch/hermes-agent/pull/10217
(items without ids are taken), github.com/openai/openai-agents-python/issues/2063 ("encrypted content … could not be
verified"), github.com/continuedev/continue/pull/11785 (ids of calls and reasoning go together).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from antiphon.ids import is_made
from antiphon.request import Change
from antiphon.stream.chunk import plain

Json: TypeAlias = Mapping[str, Any]

OURS = frozenset({"provider_data", "parsed_arguments"})  # keys of items that the API refuses
_UNKNOWN = "it is of a chat backend, and no server knows its id"


def native_input(given: Any) -> tuple[Any, list[Change]]:
    """Return the `input` to send, and what is not in it as it came. Items that can stay as they are are shared."""
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        return given, []
    made: list[Any] = []
    report: list[Change] = []
    for number, one in enumerate(given):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        item = one if isinstance(one, Mapping) else plain(one)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        made += _known(item, f"input[{number}]", report) if isinstance(item, Mapping) else [one]  # pyright: ignore[reportUnknownArgumentType]
    return made, report


def _known(item: Json, path: str, report: list[Change]) -> list[Json]:
    """Return the item as a server takes it; none where it takes nothing of it."""
    kind, unknown = item.get("type"), is_made(item.get("id"))
    if kind == "reasoning" and unknown:
        report.append(Change("ignored", path, "reasoning", None, _UNKNOWN))
        return []
    if unknown and (kind == "item_reference" or len(item) == 1):
        report.append(Change("dropped", path, "item_reference", None, _UNKNOWN))
        return []
    if unknown:
        report.append(Change("changed", f"{path}.id", "an id", "no id", _UNKNOWN))
    if not unknown and OURS.isdisjoint(item):
        return [item]
    return [{key: value for key, value in item.items() if key not in OURS and not (unknown and key == "id")}]
