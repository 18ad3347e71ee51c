"""`OpenAIResponsesCompactionSession`: a session that OpenAI's `responses.compact` shortens.

What comes back is all user messages and one opaque `compaction` item, which only OpenAI's models can read. For any
other provider there is `CompactionSession`. Source: `openai.types.responses.CompactedResponse` of openai 3.57.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from antiphon.exceptions import UserError
from antiphon.models.defaults import default_openai_client
from antiphon.run.awaiting import MaybeAwaitable, settled
from antiphon.run.items import as_input
from antiphon.stream.chunk import fields

from .compaction import Compacting, cut
from .session import Session

if TYPE_CHECKING:
    from openai import AsyncOpenAI

CompactionMode: TypeAlias = Literal["previous_response_id", "input", "auto"]
MODES: tuple[CompactionMode, ...] = ("previous_response_id", "input", "auto")
ENOUGH = 10  # so many items that are neither a user's nor a compaction


class OpenAIResponsesCompactionSession(Compacting):
    """A session that `responses.compact` shortens once there are ten items that it could leave out.

    `should_trigger_compaction` decides instead: it gets a dict with session_items, compaction_candidate_items,
    response_id and compaction_mode. Mode "auto" sends the items, unless `run_compaction` is told the id of a response
    that the server has stored. Where a call waits for its output, nothing is shortened.
    """

    def __init__(
        self,
        session_id: str,
        underlying_session: Session,
        *,
        client: AsyncOpenAI | None = None,
        model: str = "gpt-4.1",
        compaction_mode: CompactionMode = "auto",
        should_trigger_compaction: Callable[[dict[str, Any]], MaybeAwaitable[bool]] | None = None,
    ) -> None:
        super().__init__(underlying_session)
        if compaction_mode not in MODES:
            raise UserError(f"the compaction_mode is {compaction_mode!r}: one of {', '.join(MODES)}")
        self.session_id = session_id
        self.model, self.compaction_mode = model, compaction_mode
        self.should_trigger_compaction = should_trigger_compaction or _is_enough
        self._client = client

    @property
    def client(self) -> AsyncOpenAI:
        """Return the client that is asked: the one given, the default one, or a new one."""
        if self._client is None:
            self._client = default_openai_client() or _new_client()
        return self._client

    async def _shortened(self, items: list[Any], args: dict[str, Any]) -> tuple[list[Any], list[Any]] | None:
        response_id = args.get("response_id")
        mode = self._mode(args)
        if cut(items, 0) < len(items):  # a call waits, for its tool or for approval: what comes answers it
            return None
        candidates = [item for item in items if _may_go(item)]
        told = {
            "session_items": items,
            "compaction_candidate_items": candidates,
            "response_id": response_id,
            "compaction_mode": mode,
        }
        if not items or (not args.get("force") and not await settled(self.should_trigger_compaction(told))):
            return None
        given: Any = {"previous_response_id": response_id} if mode == "previous_response_id" else {"input": items}
        made = await self.client.responses.compact(model=self.model, **given)
        return items, [as_input(item) for item in made.output]

    def _mode(self, args: dict[str, Any]) -> CompactionMode:
        asked: Any = args.get("compaction_mode") or self.compaction_mode
        stored = bool(args.get("response_id")) and args.get("store") is not False
        if asked == "previous_response_id" and not args.get("response_id"):
            raise UserError('compaction_mode "previous_response_id" needs a response_id; "input" sends the items')
        return ("previous_response_id" if stored else "input") if asked == "auto" else asked


def _may_go(item: Any) -> bool:
    held = fields(item)
    return held.get("role") != "user" and held.get("type") != "compaction"


def _is_enough(told: dict[str, Any]) -> bool:
    return len(told["compaction_candidate_items"]) >= ENOUGH


def _new_client() -> AsyncOpenAI:
    from openai import AsyncOpenAI

    return AsyncOpenAI()
