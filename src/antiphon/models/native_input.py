"""What a server that speaks the Responses API is sent: a history without what it cannot know.

Items of a chat backend have ids that no server gave. Such a server looks reasoning up by its id, and refuses one that
it does not know, as it refuses encrypted content of others. Messages and calls need no id.
Sources: github.com/vercel/ai/issues/7543 ("Item with id 'rs_…' not found"), github.com/NousResearch/hermes-agent/pull/10217
(items without ids are taken), github.com/openai/openai-agents-python/issues/2063 ("encrypted content … could not be
verified"), github.com/continuedev/continue/pull/11785 (ids of calls and reasoning go together).

Reasoning that antiphon sealed in `encrypted_content` is another matter: antiphon's own gateway opens it, under whatever
id it has, and nobody else does. So it goes to servers that may be a gateway, and not to those whose profile says that they
open none (`Profile.opens_seals`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from antiphon.errors import BadRequest
from antiphon.ids import is_made
from antiphon.profile import DEFAULT, find_profile
from antiphon.request import Change
from antiphon.stream.chunk import plain
from antiphon.stream.details import SEAL

Json: TypeAlias = Mapping[str, Any]

OURS = frozenset({"provider_data", "parsed_arguments"})  # keys of items that the API refuses
_UNKNOWN = "it is of a chat backend, and no server knows its id"
_SEALED = "antiphon sealed it, and this server cannot open it"


def may_open(base_url: str) -> bool:
    """Return whether the server at `base_url` may be one that opens what antiphon sealed: its profile says so."""
    return (find_profile(base_url=base_url) or DEFAULT).opens_seals


def refuses_seals(error: BadRequest) -> bool:
    """Return whether a server says that it cannot read encrypted content.

    Source: github.com/openai/openai-agents-python/issues/2063; the code is `invalid_encrypted_content`.
    """
    return "encrypted" in f"{error.code} {error.param} {error}".lower()


def native_input(given: Any, *, opens: bool = True) -> tuple[Any, list[Change]]:
    """Return the `input` to send, and what is not in it as it came. Items that can stay as they are are shared.

    `opens`: the server may open what antiphon sealed.
    """
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping):
        return given, []  # pyright: ignore[reportUnknownVariableType]
    made: list[Any] = []
    report: list[Change] = []
    for number, one in enumerate(given):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        item = one if isinstance(one, Mapping) else plain(one)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        made += _known(item, f"input[{number}]", opens, report) if isinstance(item, Mapping) else [one]  # pyright: ignore[reportUnknownArgumentType]
    return made, report


def _known(item: Json, path: str, opens: bool, report: list[Change]) -> list[Json]:
    """Return the item as a server takes it; none where it takes nothing of it."""
    kind, unknown = item.get("type"), is_made(item.get("id"))
    if kind == "reasoning" and unknown:
        report.append(Change("ignored", path, "reasoning", None, _UNKNOWN))
        return []
    if kind == "reasoning" and not opens and _is_sealed(item):
        report.append(Change("ignored", path, "reasoning", None, _SEALED))
        return []
    if unknown and (kind == "item_reference" or len(item) == 1):
        report.append(Change("dropped", path, "item_reference", None, _UNKNOWN))
        return []
    if unknown:
        report.append(Change("changed", f"{path}.id", "an id", "no id", _UNKNOWN))
    if not unknown and OURS.isdisjoint(item):
        return [item]
    return [{key: value for key, value in item.items() if key not in OURS and not (unknown and key == "id")}]


def _is_sealed(item: Json) -> bool:
    sealed = item.get("encrypted_content")
    return isinstance(sealed, str) and sealed.startswith(SEAL)
