"""A run and its session: what was said before is read once, and each turn is added once, when it is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

from antiphon.stream.chunk import fields

from .awaiting import returned
from .config import RunConfig
from .items import ItemHelpers, MessageOutputItem, ReasoningItem, RunItem, call_id_of
from .state import RunState

# types of calls that are answered by an output item with their call_id. Those that a server answers itself are not here.
ANSWERED = frozenset(
    {"function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call"}
)
OUTPUTS = frozenset(f"{kind}_output" for kind in ANSWERED)


@runtime_checkable
class Keeps(Protocol):
    """What a run needs of a session."""

    async def get_items(self, limit: int | None = None) -> list[Any]: ...
    async def add_items(self, items: list[Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class SessionOfRun:
    """A session, as one run uses it."""

    session: Keeps
    config: RunConfig

    async def begin(self, state: RunState[Any], *, resumed: bool) -> None:
        """Put what was said before in front of the run's input, and add that to the session, unless it is there."""
        said = ItemHelpers.input_to_new_input_list(state.original_input)
        limit = _limit(self.config.session_settings)
        limit = _limit(getattr(self.session, "session_settings", None)) if limit is None else limit  # optional there
        history = list(await (self.session.get_items() if limit is None else self.session.get_items(limit=limit)))
        if resumed and said and history[-len(said) :] == said:  # the run before came to add it, and no further
            del history[-len(said) :]
            state.input_saved = True
        history = paired(history, said)
        joined, new = [*history, *said], said
        callback = self.config.session_input_callback
        if callback is not None:
            given = callback(list(history), list(said))
            joined = cast("list[Any]", await returned(given, list, "session_input_callback"))
            new = _new(joined, history, said)
        if not state.input_saved:
            await self.add(new)
        state.original_input, state.input_saved = joined, True

    async def missing(self, items: list[Any]) -> list[Any]:
        """Return those of a turn's items that are not at the end of the session already."""
        end = await self.session.get_items(limit=len(items)) if items else []
        for count in range(min(len(items), len(end)), 0, -1):
            if end[-count:] == items[:count] and any(call_id_of(fields(item)) for item in items[:count]):
                return items[count:]
        return items

    async def add(self, items: Sequence[Any]) -> None:
        """Add input items."""
        if items:
            await self.session.add_items(list(items))


def _new(joined: list[Any], history: list[Any], said: list[Any]) -> list[Any]:
    """Return those of `joined` that are new: what was `said`, and what is neither of the history nor a copy of it."""
    here, given, known = ({id(item) for item in items} for items in (joined, said, history))
    missing = [item for item in history if id(item) not in here]
    new: list[Any] = []
    for item in joined:
        if id(item) in given:
            new.append(item)
        elif item in missing:
            missing.remove(item)
        elif id(item) not in known:
            new.append(item)
    return new


def _limit(settings: Any) -> int | None:
    found = fields(settings).get("limit") if settings is not None else None
    return found if isinstance(found, int) else None


def paired(history: list[Any], said: Sequence[Any] = ()) -> list[Any]:
    """Return a history without what has lost its other half, `said` counting too.

    That is calls without output, outputs without call, and reasoning without what it led to. They come of a run that
    broke off, or of a cut by a limit, and no provider takes them.
    """
    every = [fields(item) for item in (*history, *said)]
    calls = {call_id_of(item) for item in every if item.get("type") in ANSWERED}
    outputs = {call_id_of(item) for item in every if item.get("type") in OUTPUTS}
    kept: list[Any] = []
    led_to: list[bool] = []  # of the calls that reasoning at this place led to, whether they are there
    for item in reversed(history):
        kind, whole = fields(item).get("type"), _has_its_other(fields(item), calls, outputs)
        if kind in ANSWERED:
            led_to.append(whole)
        elif kind != "reasoning":
            led_to.clear()
        if whole and (kind != "reasoning" or not led_to or any(led_to)):
            kept.append(item)
    return settled_reasoning(kept[::-1])


def settled_reasoning(items: list[Any]) -> list[Any]:
    """Return input items without reasoning that nothing of the model's follows."""
    kept: list[Any] = []
    for item in reversed(items):
        if fields(item).get("type") != "reasoning" or (kept and _of_the_model(fields(kept[-1]))):
            kept.append(item)
    return kept[::-1]


def _of_the_model(item: Mapping[str, Any]) -> bool:
    kind = str(item.get("type"))
    return item.get("role") == "assistant" or kind.endswith("_call") or kind in ("reasoning", "program", "compaction")


def _has_its_other(item: Mapping[str, Any], calls: set[str | None], outputs: set[str | None]) -> bool:
    kind = item.get("type")
    if kind in ANSWERED:
        return call_id_of(item) in outputs
    return kind not in OUTPUTS or call_id_of(item) in calls


def before_output(items: Sequence[RunItem]) -> list[RunItem]:
    """Return the items of a last turn that are kept whatever the guardrails of the output say: those of its tools.

    They end where the model's message begins, which may be refused.
    """
    place = next((n for n, item in enumerate(items) if isinstance(item, MessageOutputItem)), len(items))
    while place and isinstance(items[place - 1], ReasoningItem):
        place -= 1
    return list(items[:place])


def without_output(items: Sequence[RunItem]) -> list[RunItem]:
    """Return the items of a last turn whose output was refused: calls with their outputs, and no message."""
    return settled_items([item for item in items if not isinstance(item, MessageOutputItem)])


def settled_items(items: Sequence[RunItem]) -> list[RunItem]:
    """Return run items without reasoning that nothing of the model's follows."""
    raws = [fields(item.raw_item) for item in items]
    settled = {id(raw) for raw in settled_reasoning(raws)}
    return [item for item, raw in zip(items, raws, strict=True) if id(raw) in settled]
