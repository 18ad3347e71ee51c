"""`Handoff`: the call by which one agent lets another go on, and what the other is given."""

from __future__ import annotations

import json
import weakref
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, get_args

from pydantic import TypeAdapter, ValidationError
from pydantic_core.core_schema import ErrorType
from typing_extensions import TypeVar

from antiphon.exceptions import ModelBehaviorError, UserError
from antiphon.tools.docstrings import function_style
from antiphon.tools.schema import QuietSchema, Unfit, described, signature_of
from antiphon.tools.strict import ensure_strict_json_schema
from antiphon.tools.tool import Enabled

from .agent import Agent
from .awaiting import MaybeAwaitable, is_on, returned, settled
from .context import RunContextWrapper, TContext
from .items import RunItem
from .reading import Json, expect, is_dict, is_list

TAgent = TypeVar("TAgent", default=Any)

# the types of pydantic's own errors; a validator of an input type may put data into its own
ERROR_TYPES = frozenset[str](get_args(ErrorType))


@dataclass(frozen=True, slots=True)
class OwnedItem:
    """A run item that stands in a nested history as it is: `input_item` is its copy there."""

    run_item: RunItem
    input_item: Json


@dataclass(frozen=True)
class HandoffInputData:
    """What a handoff passes on, in three parts: before the run, before the turn, and of the turn itself.

    `new_items` end with the handoff's call and output. `input_items`, where given, are what the next agent reads
    instead of `new_items`, which stay for the session. `nested_history_owned`: which items `nest_handoff_history` left
    in `input_history` as they are; `clone` keeps it.
    """

    input_history: str | tuple[Any, ...]
    pre_handoff_items: tuple[RunItem, ...]
    new_items: tuple[RunItem, ...]
    run_context: RunContextWrapper[Any] | None = None
    input_items: tuple[RunItem, ...] | None = None
    nested_history_owned: tuple[OwnedItem, ...] = field(default=(), repr=False, kw_only=True)

    def clone(self, **kwargs: Any) -> HandoffInputData:
        """Return a copy with these fields changed."""
        return replace(self, **kwargs)


HandoffInputFilter: TypeAlias = Callable[[HandoffInputData], MaybeAwaitable[HandoffInputData]]
HandoffHistoryMapper: TypeAlias = Callable[[list[Any]], list[Any]]


@dataclass
class Handoff(Generic[TContext, TAgent]):
    """A handoff as the model sees it, a function, and what happens when it is called.

    `on_invoke_handoff` takes the context and the arguments as JSON text and returns the agent. `input_filter` changes
    what the next agent reads. `nest_handoff_history` None: as the run says. `strict_json_schema`: whether the API holds
    the model to the schema.
    """

    tool_name: str
    tool_description: str
    input_json_schema: Json
    on_invoke_handoff: Callable[[RunContextWrapper[Any], str], Awaitable[TAgent]]
    agent_name: str
    input_filter: HandoffInputFilter | None = None
    nest_handoff_history: bool | None = None
    strict_json_schema: bool = True
    is_enabled: Enabled = True
    _agent_ref: weakref.ReferenceType[Any] | None = field(default=None, init=False, repr=False)

    def get_transfer_message(self, agent: Any) -> str:
        """Return the output of the handoff's call."""
        return json.dumps({"assistant": agent.name})

    @classmethod
    def default_tool_name(cls, agent: Any) -> str:
        """Return `transfer_to_` and the agent's name, as a function's name."""
        return function_style(f"transfer_to_{agent.name}", warn_on_whitespace=False)

    @classmethod
    def default_tool_description(cls, agent: Any) -> str:
        """Return what the model is told of a handoff to `agent`."""
        return f"Handoff to the {agent.name} agent to handle the request. {agent.handoff_description or ''}"

    @property
    def agent(self) -> Any:
        """Return the agent that `handoff()` captured, while it lives; None where it is not known."""
        return None if self._agent_ref is None else self._agent_ref()

    def to_responses_tool(self) -> Json:
        """Return the handoff as a function, as the API has it."""
        return {
            "type": "function",
            "name": self.tool_name,
            "description": self.tool_description,
            "parameters": dict(self.input_json_schema),
            "strict": self.strict_json_schema,
        }


def handoff(
    agent: Agent[TContext],
    tool_name_override: str | None = None,
    tool_description_override: str | None = None,
    on_handoff: Callable[..., Any] | None = None,
    input_type: Any = None,
    input_filter: HandoffInputFilter | None = None,
    nest_handoff_history: bool | None = None,
    is_enabled: Enabled = True,
) -> Handoff[TContext, Agent[TContext]]:
    """Return a handoff to `agent`, which is always the one that it leads to.

    `on_handoff` is called first, with the context, and with `input_type` also with the arguments: they are validated
    without coercion. Raises UserError where `on_handoff` is missing for an `input_type` or takes other parameters.
    """
    expect(agent, Agent, "what handoff() leads to", "an Agent")
    _check(on_handoff, input_type)
    adapter, schema = (None, {}) if input_type is None else described(input_type, "the input_type of a handoff")
    name = tool_name_override or Handoff.default_tool_name(agent)

    async def invoke(ctx: RunContextWrapper[Any], input_json: str | None = None) -> Agent[TContext]:
        arguments = [] if adapter is None else [_read(adapter, input_json)]
        input_json = None  # no frame of a traceback holds what was passed
        if arguments and isinstance(arguments[0], Unfit):
            raise ModelBehaviorError(f"Invalid JSON in the arguments of handoff {name}: {arguments[0].why}")
        if on_handoff is not None:
            await settled(on_handoff(ctx, *arguments))
        return agent

    made: Handoff[TContext, Agent[TContext]] = Handoff(
        tool_name=name,
        tool_description=tool_description_override or Handoff.default_tool_description(agent),
        input_json_schema=ensure_strict_json_schema(schema),
        on_invoke_handoff=invoke,
        agent_name=agent.name,
        input_filter=input_filter,
        nest_handoff_history=nest_handoff_history,
        is_enabled=_switch(is_enabled),
    )
    made._agent_ref = weakref.ref(agent)  # pyright: ignore[reportPrivateUsage]  # the name that others read it by
    return made


def _switch(is_enabled: Enabled) -> Enabled:
    """Return a bool as it is and a function as an async one."""

    async def switched(ctx: RunContextWrapper[Any], agent: Any) -> bool:
        return await is_on(is_enabled, ctx, agent)

    return switched if callable(is_enabled) else is_enabled


async def filtered(data: HandoffInputData, input_filter: HandoffInputFilter) -> HandoffInputData:
    """Return what a filter, sync or async, makes of `data`. Raises UserError where it is something else."""
    if not callable(input_filter):
        raise UserError(f"an input_filter is {type(input_filter).__name__}: it must be callable")
    return await returned(input_filter(data), HandoffInputData, "an input_filter")


def owned_items(data: HandoffInputData) -> tuple[OwnedItem, ...]:
    """Return the items that still stand in the nested history of `data`; each place there stands for one of them."""
    places: list[Any] = [] if isinstance(data.input_history, str) else list(data.input_history)
    found: list[OwnedItem] = []
    for one in data.nested_history_owned:
        same = next((number for number, item in enumerate(places) if item is one.input_item), None)
        if same is None:
            same = next((number for number, item in enumerate(places) if item == one.input_item), None)
        if same is not None:
            found.append(OwnedItem(one.run_item, places.pop(same)))
    return tuple(found)


def _read(adapter: TypeAdapter[Any], input_json: str | None) -> Any:
    if input_json is None:
        return Unfit("there are none, and the handoff has an input_type")
    try:
        return adapter.validate_json(input_json, strict=True)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        known = _properties(adapter)
        return Unfit("; ".join(_place(one["loc"], one["type"], known) for one in found))
    except Exception as error:  # noqa: BLE001  # whatever a validator raises may hold the arguments
        return Unfit(f"a validator raised {type(error).__name__}")


def _place(loc: tuple[int | str, ...], kind: str, known: frozenset[str]) -> str:
    """Return where and why a value does not fit. A key that no schema names is the model's, so it is not told."""
    told = [str(key) if isinstance(key, int) or key in known else "…" for key in loc]
    return f"{'.'.join(told) or 'arguments'}: {kind if kind in ERROR_TYPES else 'refused by a validator'}"


def _properties(adapter: TypeAdapter[Any]) -> frozenset[str]:
    """Return the names of all properties in the schema of a type."""
    names = set[str]()
    layer: list[Any] = [adapter.json_schema(schema_generator=QuietSchema)]
    while layer:
        held = layer.pop()
        if is_dict(held):
            names.update(held["properties"] if is_dict(held.get("properties")) else ())
            layer.extend(held.values())
        elif is_list(held):
            layer.extend(held)
    return frozenset(names)


def _check(on_handoff: Callable[..., Any] | None, input_type: Any) -> None:
    if on_handoff is None:
        if input_type is not None:
            raise UserError("a handoff with input_type needs on_handoff, which takes the context and the input")
        return
    if not callable(on_handoff):
        raise UserError(f"on_handoff is {type(on_handoff).__name__}: it must be callable")
    wanted = ["the context"] if input_type is None else ["the context", "the input"]
    count = len(signature_of(on_handoff).parameters)
    if count != len(wanted):
        raise UserError(f"on_handoff takes {count} parameters: it must take {' and '.join(wanted)}")
