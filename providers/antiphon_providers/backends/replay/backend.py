"""A backend without a model: built-in scenarios, recordings, and short answers made from the request. Deterministic.

It is the embedded default: it needs no server, no key and no network.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any, Self

from antiphon.backend import Form, Timeout
from antiphon.errors import ConnectionFailed, NotFound
from antiphon_providers.backends.completion import completion_of_stream
from antiphon_providers.backends.concealing import Hide

from .playing import CREATED, Played
from .recordings import play_recording, recordings_in
from .reply import reply
from .scenario import play_scenario, scenario, scenario_names

PREFIX = "replay/"


class ReplayBackend:
    """Answers by the name of the model: `replay/<name>` plays a recording or a built-in scenario of that name.

    Any other name gets an answer made from the request: see `reply`. `recordings`: name -> file; `always`: the one
    that answers whatever the model is. `delay`: seconds before each piece of a stream.
    """

    def __init__(
        self, *, recordings: Mapping[str, Path] | None = None, always: str | None = None, delay: float = 0.0
    ) -> None:
        self._recordings = dict(recordings or {})
        self._always = always
        self._delay = delay

    @classmethod
    def from_dir(cls, path: str | Path, *, delay: float = 0.0) -> Self:
        """Return a backend that plays the recordings in a folder, by their paths there; or, always, a single file.

        Raises BadInput where there is none.
        """
        found = recordings_in(path)
        return cls(recordings=found, always=next(iter(found)) if Path(path).is_file() else None, delay=delay)

    def __repr__(self) -> str:
        return f"ReplayBackend({len(self._recordings)} recordings)" if self._recordings else "ReplayBackend()"

    @property
    def form(self) -> Form:
        """Pieces of an SSE body."""
        return "sse"

    async def stream(
        self,
        body: Mapping[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
        timeout: Timeout | None = None,  # noqa: ASYNC109
    ) -> AsyncGenerator[bytes, None]:
        """Yield the answer, one event a piece."""
        played = self._played(body)
        for piece in played.pieces:
            await asyncio.sleep(self._delay)  # also where it is 0: others get their turn, and cancelling comes through
            yield piece
        if played.breaks:
            raise ConnectionFailed(played.breaks)

    async def complete(
        self,
        body: Mapping[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
        timeout: Timeout | None = None,  # noqa: ASYNC109
    ) -> dict[str, Any]:
        """Return the answer as a whole completion."""
        played = self._played({**body, "stream_options": {"include_usage": True}})
        if played.breaks:
            raise ConnectionFailed(played.breaks)
        return played.whole or completion_of_stream(played.pieces, Hide())

    async def models(self) -> list[dict[str, Any]]:
        """Return the recordings and the scenarios as models, and `echo` for all other names."""
        named = {f"{PREFIX}{name}": "recording" for name in self._recordings}
        titled = {f"{PREFIX}{name}": scenario(name)["title"] for name in scenario_names()}
        told = {**titled, **named, "echo": "A short answer that echoes the last user message"}
        base = {"object": "model", "created": CREATED, "owned_by": "antiphon"}
        return [{"id": name, **base, "description": about} for name, about in told.items()]

    async def aclose(self) -> None:
        """Do nothing: nothing is kept open."""

    def _played(self, body: Mapping[str, Any]) -> Played:
        model = str(body.get("model") or "")
        name = self._always or model.removeprefix(PREFIX)
        if name in self._recordings:
            return play_recording(self._recordings[name])
        if not model.startswith(PREFIX):
            return reply(body)
        if name not in scenario_names():
            known = ", ".join((*self._recordings, *scenario_names()))
            raise NotFound(
                f"there is no scenario {name!r}; there are: {known}", status_code=404, code="model_not_found"
            )
        return play_scenario(name, body)
