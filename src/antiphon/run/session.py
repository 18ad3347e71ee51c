"""A run and its session: what was said before is read once, and each turn is added once, when it is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from typing import Any, Protocol, cast, runtime_checkable

from antiphon.stream.chunk import fields

from .awaiting import returned
from .config import RunConfig
from .context import RunContextWrapper
from .items import ItemHelpers, MessageOutputItem, ReasoningItem, RunItem, ToolCallOutputItem, call_id_of
from .state import RunState

# types of calls that are answered by an output item with their call_id. Those that a server answers itself are not here.
ANSWERED = frozenset(
    {"function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call"}
)
OUTPUTS = frozenset(f"{kind}_output" for kind in ANSWERED)
WITHHELD = "What this call returned is withheld: a guardrail of the run's output refused it."
METHODS = ("get_items", "add_items", "pop_item", "clear_session")  # of a session, those that read or change it


@runtime_checkable
class Keeps(Protocol):
    """What a run needs of a session."""

    async def get_items(self, limit: int | None = None, **more: Any) -> list[Any]: ...
    async def add_items(self, items: list[Any], **more: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class SessionOfRun:
    """A session, as one run uses it."""

    session: Keeps
    config: RunConfig
    told: Mapping[str, Any]  # what its methods are given beside: the context of the run, where all of them take it

    @classmethod
    def of(cls, session: Any, config: RunConfig, context: RunContextWrapper[Any]) -> SessionOfRun:
        """Return a session for one run. One whose methods all have a parameter `wrapper` is given the run's context.

        It may keep what it holds apart by that, such as by tenant. Source: `Session` of openai-agents 0.24.0.
        """
        methods = (getattr(session, name, None) for name in METHODS)
        told = all(callable(one) and _takes_wrapper(one) for one in methods)
        return cls(session, config, {"wrapper": context} if told else {})

    async def begin(self, state: RunState[Any], *, resumed: bool) -> None:
        """Put what was said before in front of the run's input, and add that to the session, unless it is there."""
        said = ItemHelpers.input_to_new_input_list(state.original_input)
        limit = _limit(self.config.session_settings)
        limit = _limit(getattr(self.session, "session_settings", None)) if limit is None else limit  # optional there
        asked: dict[str, Any] = dict(self.told) if limit is None else {"limit": limit, **self.told}
        history = list(await self.session.get_items(**asked))
        if resumed and said and history[-len(said) :] == said:  # the run before came to add it, and no further
            del history[-len(said) :]
            state.input_saved = True
        history = paired(history, said)
        if state.reasoning_item_id_policy == "omit":
            history = [_without_id(item) if fields(item).get("type") == "reasoning" else item for item in history]
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
        end = await self.session.get_items(limit=len(items), **self.told) if items else []
        for count in range(min(len(items), len(end)), 0, -1):
            if end[-count:] == items[:count] and any(call_id_of(fields(item)) for item in items[:count]):
                return items[count:]
        return items

    async def add(self, items: Sequence[Any]) -> None:
        """Add input items."""
        if items:
            await self.session.add_items(list(items), **self.told)


def _without_id(item: Any) -> dict[str, Any]:
    return {key: value for key, value in fields(item).items() if key != "id"}


def _takes_wrapper(method: Any) -> bool:
    try:
        found = signature(method).parameters.get("wrapper")
    except (TypeError, ValueError):  # a callable without a signature
        return False
    return found is not None and found.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


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


def without_output(items: Sequence[RunItem], *, withheld: bool) -> list[RunItem]:
    """Return the items of a last turn whose output was refused: calls with their outputs, and no message.

    `withheld`: what the tools returned is that output, so there is a sentence in its place.
    """
    kept = [item for item in items if not isinstance(item, MessageOutputItem)]
    return settled_items([_withheld(item) if withheld else item for item in kept])


def _withheld(item: RunItem) -> RunItem:
    if not isinstance(item, ToolCallOutputItem) or fields(item.raw_item).get("type") != "function_call_output":
        return item
    return replace(item, raw_item={**fields(item.raw_item), "output": WITHHELD})


def settled_items(items: Sequence[RunItem], said: Sequence[Any] | None = None) -> list[RunItem]:
    """Return run items without reasoning that nothing of the model's follows.

    With what was `said` before them, also without what has lost its other half, as `paired` has it.
    """
    raws = [fields(item.raw_item) for item in items]
    settled = {id(raw) for raw in (settled_reasoning(raws) if said is None else paired(raws, said))}
    return [item for item, raw in zip(items, raws, strict=True) if id(raw) in settled]
