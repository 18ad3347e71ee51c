"""`RunState`: where a run stands. The loop works on one, a result holds one, and a run can start from one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any, Generic, Literal, TypedDict, Unpack, cast

from antiphon.exceptions import RunErrorDetails, UserError
from antiphon.models.interface import ModelResponse
from antiphon.stream.chunk import fields, is_object

from .agent import Agent
from .approvals import Invocation
from .config import DEFAULT_MAX_TURNS, ReasoningItemIdPolicy
from .context import RunContextWrapper, TContext
from .handoffs import OwnedItem, TAgent
from .items import HandoffCallItem, InputItem, ItemHelpers, ReasoningItem, RunItem, ToolApprovalItem, ToolCallItem
from .reading import Json, is_list, refuse_unknown


@dataclass
class Conversation:
    """How the history is kept by the server, if it is: then only what it does not know yet is sent.

    `known`: how many of the items since the run's input the server has. `auto`: each answer's id is that of the next
    request's previous response, from the first answer on.
    """

    conversation_id: str | None = None
    previous_response_id: str | None = None
    auto: bool = False
    known: int | None = None
    before: tuple[str | None, int | None] = (None, None)

    @property
    def managed(self) -> bool:
        """Whether the server keeps the history."""
        return bool(self.conversation_id or self.previous_response_id or self.auto)

    def mark(self) -> None:
        """Note where a turn begins, in case it is broken off."""
        self.before = (self.previous_response_id, self.known)

    def back(self) -> None:
        """Go back to where the turn began."""
        self.previous_response_id, self.known = self.before

    def answered(self, response_id: str | None, known: int) -> None:
        """Note an answer: all items so far are known to the server."""
        if not self.managed:
            return
        self.known = known
        if self.conversation_id is None and response_id is not None:
            self.previous_response_id = response_id


class WriteOptions(TypedDict, total=False):
    """The options of `RunState.to_json` and `to_string`."""

    context_serializer: Callable[[Any], Mapping[str, Any]] | None
    strict_context: bool
    include_tracing_api_key: bool


class ReadOptions(TypedDict, total=False):
    """The options of `RunState.from_json` and `from_string`."""

    context_override: Any
    context_deserializer: Callable[[Any], Any] | None
    strict_context: bool


@dataclass(eq=False)
class RunState(Generic[TContext, TAgent]):
    """Where a run stands: from here it can go on, here or in another process.

    `original_input`: as the next agent reads it. `new_items`: all that came of the turns that are done; `model_items`:
    what of that the model is given. `turn`: the items of the turn at hand, of which `turn_saved` are in the session.
    `pending`: the calls that wait for a decision, if the run is interrupted. `queued`: input that was added, until the
    next model call. `asking`: the turn at hand has no answer yet; `answered`: it has, and its calls are not all done.
    """

    context: RunContextWrapper[TContext]
    original_input: str | list[Any]
    starting_agent: Agent[TContext]
    max_turns: int | None = DEFAULT_MAX_TURNS
    current_agent: Agent[TContext] = field(default=cast("Any", None), repr=False)  # the starting one, unless given
    current_turn: int = 0
    new_items: list[RunItem] = field(default_factory=list[Any], repr=False)
    model_items: list[RunItem] = field(default_factory=list[Any], repr=False)
    turn: list[RunItem] = field(default_factory=list[Any], repr=False)
    turn_saved: int = 0
    input_saved: bool = False
    pending: list[ToolApprovalItem] = field(default_factory=list[Any], repr=False)
    queued: list[InputItem] = field(default_factory=list[Any], repr=False)
    model_responses: list[ModelResponse] = field(default_factory=list[Any], repr=False)
    conversation: Conversation = field(default_factory=Conversation)
    owned: tuple[OwnedItem, ...] = field(default=(), repr=False)
    rewritten: bool = False
    begun: bool = False
    asking: bool = False
    answered: bool = False
    ended: bool = False
    final_output: Any = None
    incomplete_reason: str | None = None
    used: list[tuple[Agent[Any], list[str]]] = field(default_factory=list[Any], repr=False)
    input_guardrail_results: list[Any] = field(default_factory=list[Any], repr=False)
    output_guardrail_results: list[Any] = field(default_factory=list[Any], repr=False)
    tool_input_guardrail_results: list[Any] = field(default_factory=list[Any], repr=False)
    tool_output_guardrail_results: list[Any] = field(default_factory=list[Any], repr=False)
    reasoning_item_id_policy: ReasoningItemIdPolicy | None = None
    agent_tool_invocation: Any = None

    def __post_init__(self) -> None:
        if self.current_agent is None:  # pyright: ignore[reportUnnecessaryComparison]  # the default above
            self.current_agent = self.starting_agent

    # --- what a caller does with it ----------------------------------------------------------------------------------

    def get_interruptions(self) -> list[ToolApprovalItem]:
        """Return the calls that wait for a decision, those inside agent tools included."""
        return list(self.pending)

    def approve(self, approval_item: ToolApprovalItem, always_approve: bool = False) -> None:
        """Let a pending call run when the run goes on; with `always_approve`, and all later ones of its agent's tool.

        Raises UserError for an item of another run.
        """
        self._owner(approval_item).context.approve_tool(approval_item, always_approve)

    def reject(
        self, approval_item: ToolApprovalItem, always_reject: bool = False, *, rejection_message: str | None = None
    ) -> None:
        """Refuse a pending call; the model is told `rejection_message`. With `always_reject`, all later ones too.

        Raises UserError for an item of another run.
        """
        self._owner(approval_item).context.reject_tool(approval_item, always_reject, rejection_message)

    @property
    def pending_input(self) -> list[Any]:
        """What `add_input` queued, as input items."""
        return [item.to_input_item() for item in self.queued]

    def add_input(self, input: str | list[Any]) -> None:
        """Queue input of the user for the next model call; it comes after the outputs of the pending calls.

        Raises UserError where the run has its final output, where what a waiting tool returns may become that, and for
        input that is neither text nor input items.
        """
        if self.ended:
            raise UserError("the run is complete: give new input to a new run, with result.to_input_list()")
        if self.pending and self._tools_may_end():
            raise UserError(
                "what a tool of this turn returns may end the run, as tool_use_behavior says: the model might never "
                "read the added input. Give it to a new run, with result.to_input_list()"
            )
        given: Any = input
        if not isinstance(given, str) and not (is_list(given) and all(map(is_object, given))):
            raise UserError(f"the added input is {type(given).__name__}: it is text or a list of input items")
        items = ItemHelpers.input_to_new_input_list(input)
        self.queued.extend(InputItem(self.current_agent, item) for item in items)

    def clear_pending_input(self) -> None:
        """Drop what `add_input` queued."""
        self.queued.clear()

    def to_json(self, **options: Unpack[WriteOptions]) -> Json:
        """Return the state as JSON data.

        `context_serializer`: a function of the context that returns a mapping. `strict_context`: a context that would
        lose its type raises UserError. There is no tracing key in a state, so `include_tracing_api_key` adds nothing.
        """
        from .state_json import state_json

        refuse_unknown("a written run state", options, WriteOptions.__optional_keys__)
        return state_json(self, options)

    def to_string(self, **options: Unpack[WriteOptions]) -> str:
        """Return the state as JSON text; the options are those of `to_json`.

        Raises UserError where something in the run has no form in JSON, such as an output that holds itself.
        """
        import json

        refuse_unknown("a written run state", options, WriteOptions.__optional_keys__)
        try:
            return json.dumps(self.to_json(**options), ensure_ascii=False)
        except (ValueError, TypeError, RecursionError) as error:
            raise UserError(f"the state cannot be written as JSON: {type(error).__name__}: {error}"[:300]) from None

    @classmethod
    async def from_json(
        cls, initial_agent: Agent[Any], state_json: Mapping[str, Any], **options: Unpack[ReadOptions]
    ) -> RunState[Any]:
        """Return the state that `to_json` gave.

        Its agents are found by name from `initial_agent`, through handoffs and agent tools. The context is
        `context_override`, or what `context_deserializer` makes of what was stored, or that itself. Raises UserError
        for another version, an agent that is not found, or, with `strict_context`, a context that lost its type.
        """
        from .state_json import read_state

        refuse_unknown("a run state that is read", options, ReadOptions.__optional_keys__)
        return read_state(initial_agent, state_json, options)

    @classmethod
    async def from_string(
        cls, initial_agent: Agent[Any], state_string: str, **options: Unpack[ReadOptions]
    ) -> RunState[Any]:
        """Return the state that `to_string` gave; the options are those of `from_json`."""
        import json

        try:
            data = json.loads(state_string)
        except ValueError as error:
            raise UserError(f"a run state is JSON text, and this is none: {error}") from None
        return await cls.from_json(initial_agent, data, **options)

    def copy(self) -> RunState[TContext]:
        """Return a state of its own: what happens to the one does not show in the other. The context is shared."""
        held = self.context
        wrapper = replace(held, usage=deepcopy(held.usage), turn_input=list(held.turn_input))
        wrapper._ledger = held._ledger.copy()  # pyright: ignore[reportPrivateUsage]  # a part of the same thing
        wrapper._progress = None  # pyright: ignore[reportPrivateUsage]  # as above
        lists: Json = {name: list(value) for name, value in vars(self).items() if is_list(value)}  # `used` is below
        lists["used"] = [(agent, list(names)) for agent, names in self.used]
        return replace(self, context=wrapper, conversation=replace(self.conversation), **lists)

    def settled(self) -> RunState[TContext]:
        """Return a copy to go on from: before the turn at hand, where that has no answer yet."""
        again = self.copy()
        if again.asking:
            again.drop_turn()
        return again

    def become(self, other: RunState[TContext]) -> None:
        """Stand where `other` does, as a copy: the run that started from this state has come that far."""
        vars(self).update(vars(other.settled()))

    # --- what the loop does with it ----------------------------------------------------------------------------------

    @property
    def items(self) -> list[RunItem]:
        """All items of the run so far: of the turns that are done, of the one at hand, and the calls that wait."""
        own = [item for item in self.pending if self.owns(item)]
        return [*self.new_items, *self.turn, *own]

    def model_input(self) -> list[Any]:
        """Return what the model is given next, or of that what a server that keeps the history does not know yet."""
        since = [*self.model_items, *self.turn]
        known = self.conversation.known
        before = ItemHelpers.input_to_new_input_list(self.original_input) if known is None else []
        return [*before, *self.inputs_of(since[known or 0 :])]

    def inputs_of(self, items: Iterable[RunItem]) -> list[Any]:
        """Return items as input of a model, by the run's policy about the ids of reasoning."""
        omit = self.reasoning_item_id_policy == "omit"
        return [_as_input(item, omit) for item in items if not isinstance(item, ToolApprovalItem)]

    def end_turn(self) -> None:
        """Put the items of the turn with those of the others."""
        self.new_items.extend(self.turn)
        self.model_items.extend(self.turn)
        self.start_turn()

    def start_turn(self) -> None:
        """Begin a turn, with nothing in it."""
        self.turn, self.turn_saved, self.pending = [], 0, []
        self.asking = self.answered = False

    def drop_turn(self) -> None:
        """Forget a turn that was broken off before its end: it is not counted, and what the user added waits again."""
        self.current_turn -= 1
        self.conversation.back()
        self.queued[:0] = [item for item in self.turn if isinstance(item, InputItem)]
        ledger = self.context._ledger  # pyright: ignore[reportPrivateUsage]  # a part of the same thing
        for item in self.turn:
            ledger.forget(getattr(item, "call_id", None) or "")
        self.start_turn()

    def used_by(self, agent: Agent[Any]) -> list[str]:
        """Return the names of the tools that an agent has used."""
        for known, names in self.used:
            if known is agent:
                return names
        self.used.append((agent, []))
        return self.used[-1][1]

    def details(self) -> RunErrorDetails:
        """Return how far the run has come."""
        return RunErrorDetails(
            self.original_input,
            self.items,
            list(self.model_responses),
            self.current_agent,
            self.context,
            list(self.input_guardrail_results),
            list(self.output_guardrail_results),
            list(self.tool_input_guardrail_results),
            list(self.tool_output_guardrail_results),
        )

    def preserved(self, mode: Literal["preserve_all", "normalized"]) -> list[Any]:
        """Return the run as the input of another: all of it, or as the last agent reads it.

        Raises ValueError for another mode.
        """
        before = ItemHelpers.input_to_new_input_list(self.original_input)
        if mode == "preserve_all":
            owned = {id(one.run_item) for one in self.owned}
            return [*before, *self.inputs_of(item for item in self.items if id(item) not in owned)]
        if mode != "normalized":
            raise ValueError(f'mode is {mode!r}: it is "preserve_all" or "normalized"')
        return [*before, *self.inputs_of([*self.model_items, *self.turn] if self.rewritten else self.items)]

    def owns(self, item: ToolApprovalItem) -> bool:
        """Whether a call is of this run itself, not of one inside an agent tool."""
        nested = self.context._ledger.nested.values()  # pyright: ignore[reportPrivateUsage]  # a part of the same thing
        return not any(one is item for state in nested for one in state.pending)

    def _tools_may_end(self) -> bool:
        """Whether the outputs of the turn's functions may come to be the final output."""
        behavior: Any = self.current_agent.tool_use_behavior
        if behavior == "run_llm_again" or any(isinstance(item, HandoffCallItem) for item in self.turn):
            return False
        calls = [item for item in self.turn if isinstance(item, ToolCallItem)]
        made = [
            Invocation.of(one.raw_item).tool for one in calls if fields(one.raw_item).get("type") == "function_call"
        ]
        if not isinstance(behavior, Mapping):
            return bool(made)
        names = {*made, *(name.rpartition(".")[2] for name in made)}
        return not names.isdisjoint(behavior["stop_at_tool_names"])  # pyright: ignore[reportUnknownArgumentType]  # a StopAtTools

    def _owner(self, item: ToolApprovalItem) -> RunState[Any]:
        """Return the state whose call it is: this one, or one inside an agent tool."""
        if not isinstance(item, ToolApprovalItem):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers without types
            raise UserError(f"{type(item).__name__} is no call that waits: give one of get_interruptions()")
        for same in (is_, _alike):
            for owner in self._owners():
                if any(same(one, item) for one in owner.pending if owner.owns(one)):
                    return owner
        raise UserError(
            f"the call {item.call_id!r} of {item.qualified_name!r} does not wait in this state; "
            f"there are: {[one.call_id for one in self.pending]}"
        )

    def _owners(self) -> list[RunState[Any]]:
        nested: list[RunState[Any]] = [*self.context._ledger.nested.values()]  # pyright: ignore[reportPrivateUsage]  # as above
        return [self, *(owner for state in nested for owner in state._owners())]


def _alike(one: ToolApprovalItem, other: ToolApprovalItem) -> bool:
    return Invocation.of(one.raw_item) == Invocation.of(other.raw_item)


def _as_input(item: RunItem, omit_id: bool) -> Any:
    said = item.to_input_item()
    if omit_id and isinstance(item, ReasoningItem):
        said.pop("id", None)
    return said
