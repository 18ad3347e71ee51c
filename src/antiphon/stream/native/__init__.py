"""Native Responses streams of any server, repaired into the canonical grammar.

    native event -> NativeReader -> Fact -> Repairer -> event

The reader copes with what servers leave out, say twice or number wrongly; the repairer says the facts in order, one
item after another. Neither does I/O. `repair` runs both over a stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from antiphon.ids import IdsChoice

from .repair import Repairer

__all__ = ["Repairer", "repair"]


def repair(
    events: Iterable[Any], *, request: Any = None, ids: IdsChoice = "random", created_at: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield canonical events, as dicts, for the events of any server that speaks the Responses API.

    `events` are mappings or openai objects. What `request` said is in the snapshots where the server does not repeat
    it. What the source raises ends as `error` and `response.failed`.
    """
    repairer = Repairer(request=request, ids=ids, created_at=created_at)
    try:
        for event in events:
            yield from repairer.feed(event)
    except Exception as error:  # noqa: BLE001 -- whatever the source raises is the end of the response
        yield from repairer.fail(error)
        return
    yield from repairer.finish()
