"""The snapshots of a repaired stream: what the server says of the response, and what it leaves out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antiphon.ids import Ids
from antiphon.stream.chunk import copied, fields, plain, whole_number, word
from antiphon.stream.endings import Ending
from antiphon.stream.snapshot import DEFAULTS, TIERS, Snapshots
from antiphon.usage import responses_usage

from .facts import Json

SERVICE_TIERS = TIERS | {"fast", "ultrafast"}  # openai types, `Response.service_tier`
# what the snapshots build themselves
OWN = frozenset(
    {"id", "object", "created_at", "completed_at", "status", "error", "incomplete_details", "output", "usage"}
)


class Responses:
    """Makes the snapshots of one response: id, time and model are those of the first that is said."""

    def __init__(self, request: Any, ids: Ids, clock: Callable[[], int]) -> None:
        self._request: Json = {} if request is None else dict(plain(fields(request)))
        self._ids, self._clock = ids, clock
        self._said: Json = {}  # by the server, so far
        self._id = ""
        self._created_at = 0
        self._model = ""

    def begin(self, response: Json) -> None:
        """Take what the server says of the response in its head, until the first snapshot is made."""
        if not self._id:
            self._said.update(response)

    def head(self, status: str) -> Json:
        """Return a snapshot of the response before its end."""
        self._fix()
        return self._snapshots({}).make(status, **self._extra({}))

    def final(self, how: Ending, response: Json, output: list[Json]) -> Json:
        """Return the response at its end."""
        self._fix()
        made: Json = {"output": output, "usage": usage_of(response.get("usage"))}
        if how.terminal == "completed":
            made["completed_at"] = whole_number(response.get("completed_at")) or self._clock()
        if how.terminal == "incomplete":
            made["incomplete_details"] = {"reason": how.reason}
        if how.fault is not None:
            made["error"] = how.fault._asdict()
        return self._snapshots(response).make(how.terminal, **self._extra(response), **made)

    def _fix(self) -> None:
        if not self._id:
            self._id = word(self._said.get("id")) or self._ids.make("resp_")
            self._created_at = whole_number(self._said.get("created_at")) or self._clock()
            self._model = word(self._said.get("model")) or word(self._request.get("model"))

    def _snapshots(self, response: Json) -> Snapshots:
        held = {**self._request, **_given(self._said), **_given(response), "model": self._model}
        return Snapshots(held, self._id, self._created_at)

    def _extra(self, response: Json) -> Json:
        """Return what the server says beside what each response has; an id or a model that is another at the end, too."""
        known = self._snapshots(response).make("completed")
        extra = {key: one for key, one in {**self._said, **response}.items() if key not in known and key not in OWN}
        changed = {
            key: response[key]
            for key, kept in (("id", self._id), ("model", self._model))
            if response.get(key) not in (None, kept)
        }
        changed |= {
            key: one for key, one in {**self._said, **response}.items() if one is not None and not _fits(key, one)
        }
        if changed:
            extra["provider_data"] = {**(extra.get("provider_data") or {}), **changed}
        kept: Json = copied(extra)
        return kept


def _given(response: Json) -> Json:
    return {key: one for key, one in response.items() if one is not None and _fits(key, one)}


def _fits(key: str, value: Any) -> bool:
    """Return whether a snapshot can hold the value at that key."""
    if key == "service_tier":
        return isinstance(value, str) and value in SERVICE_TIERS
    default: Any = DEFAULTS.get(key)
    for kind in (bool, list, dict):
        if isinstance(default, kind):
            return isinstance(value, kind)
    if isinstance(default, float | int):
        return isinstance(value, int | float)
    return key != "truncation" or value in ("auto", "disabled")


def usage_of(usage: Any) -> Json | None:
    """Return the usage, whole, with what else the server counts; None where it counts nothing."""
    held: Json = dict(plain(fields(usage)))
    counted = responses_usage(held)
    if counted is None:
        return None
    details = {
        key: {**fields(held.get(key)), **counted[key]} for key in ("input_tokens_details", "output_tokens_details")
    }
    return {**held, **counted, **details}
