"""Run items: what a run brought forth, one class a kind, in the order in which it came.

An item holds the agent it is of until `release_agent`, weakly afterwards, and the raw item as the model gave it or as
it is sent to the model.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias
from uuid import uuid4

from antiphon.exceptions import AgentsException
from antiphon.models.interface import input_item
from antiphon.stream.chunk import fields, plain

from .approvals import Invocation
from .reading import Json, is_dict
from .tool_outputs import output_payload

if TYPE_CHECKING:
    from .agent import Agent


ItemEventName: TypeAlias = Literal[
    "message_output_created",
    "handoff_requested",
    "handoff_occured",
    "tool_called",
    "tool_search_called",
    "tool_search_output_created",
    "tool_output",
    "reasoning_item_created",
    "mcp_approval_requested",
    "mcp_approval_response",
    "mcp_list_tools",
]


@dataclass(eq=False)
class RunItemBase:
    """What all run items have.

    `event`: the name under which those of a class are streamed; None: they are not. `held`: its fields that are agents.
    """

    event: ClassVar[ItemEventName | None] = None
    held: ClassVar[tuple[str, ...]] = ("agent",)
    agent: Agent[Any] = field(repr=False)  # it has tools and schemas: pages
    raw_item: Any

    def __init_subclass__(cls, event: ItemEventName | None = None) -> None:
        cls.event = event

    def release_agent(self) -> None:
        """Hold the agents of this item weakly from now on."""
        for name in self.held:
            agent = self.__dict__.pop(name, None)
            if agent is not None:
                self.__dict__["_weak_" + name] = weakref.ref(agent)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in self.held:  # released before
                known = self.__dict__.get("_weak_" + name)
                return None if known is None else known()
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def to_input_item(self) -> Json:
        """Return it as an input item of the next model call."""
        return as_input(self.raw_item)


@dataclass(eq=False)
class MessageOutputItem(RunItemBase, event="message_output_created"):
    """A message of the model."""

    type: Literal["message_output_item"] = "message_output_item"


@dataclass(eq=False)
class ReasoningItem(RunItemBase, event="reasoning_item_created"):
    """What the model thought."""

    type: Literal["reasoning_item"] = "reasoning_item"


@dataclass(eq=False)
class HandoffCallItem(RunItemBase, event="handoff_requested"):
    """The call by which the model hands over to another agent."""

    type: Literal["handoff_call_item"] = "handoff_call_item"


@dataclass(eq=False)
class HandoffOutputItem(RunItemBase, event="handoff_occured"):
    """The output of such a call: the other agent has taken over."""

    held = ("agent", "source_agent", "target_agent")
    source_agent: Agent[Any] = field(repr=False)
    target_agent: Agent[Any] = field(repr=False)
    type: Literal["handoff_output_item"] = "handoff_output_item"


class CallItemBase(RunItemBase):
    """What items of a call have."""

    @property
    def call_id(self) -> str | None:
        """The call's id."""
        return call_id_of(self.raw_item)


@dataclass(eq=False)
class ToolCallItem(CallItemBase, event="tool_called"):
    """A call of a tool: a function's, or one of the API's own kinds.

    `description` and `title` are the tool's; `tool_origin` says where a function tool comes from.
    """

    type: Literal["tool_call_item"] = "tool_call_item"
    description: str | None = None
    title: str | None = None
    tool_origin: Any = None
    resolved_tool_name: str | None = field(default=None, kw_only=True, repr=False)

    @property
    def tool_name(self) -> str | None:
        """The name of the tool; None for a kind of call that has none."""
        return self.resolved_tool_name or _read(self.raw_item, "name")


@dataclass(eq=False)
class ToolCallOutputItem(CallItemBase, event="tool_output"):
    """The output of a tool. `output` is what the tool returned, `raw_item` what the model is sent of it."""

    output: Any
    type: Literal["tool_call_output_item"] = "tool_call_output_item"
    tool_origin: Any = None
    custom_data: Json | None = None


@dataclass(eq=False)
class ToolApprovalItem(CallItemBase):
    """A call that waits for a decision. It never becomes input of a model."""

    tool_name: str | None = None
    type: Literal["tool_approval_item"] = "tool_approval_item"
    tool_namespace: str | None = None
    tool_origin: Any = None

    def __post_init__(self) -> None:
        self.tool_name = self.tool_name or _read(self.raw_item, "name") or _read(self.raw_item, "tool_name")
        self.tool_namespace = self.tool_namespace or _read(self.raw_item, "namespace")

    @property
    def name(self) -> str | None:
        """The name of the tool."""
        return self.tool_name

    @property
    def qualified_name(self) -> str | None:
        """The name under which the tool is decided about: with its namespace."""
        return Invocation.of(self.raw_item, self.tool_name).tool or self.tool_name

    @property
    def arguments(self) -> str | None:
        """What the tool is called with, as JSON text where it is not text by itself."""
        said = (_read(self.raw_item, name) for name in ("arguments", "params", "input", "action", "operation"))
        found = next((one for one in said if one is not None), None)
        return found if found is None or isinstance(found, str) else json.dumps(plain(found))

    def to_input_item(self) -> Json:
        """Raise AgentsException: it is none."""
        raise AgentsException("a ToolApprovalItem is no input of a model: leave such items out")


@dataclass(eq=False)
class ToolSearchCallItem(RunItemBase, event="tool_search_called"):
    """A search for tools that are loaded when needed."""

    type: Literal["tool_search_call_item"] = "tool_search_call_item"


@dataclass(eq=False)
class ToolSearchOutputItem(RunItemBase, event="tool_search_output_created"):
    """What such a search found."""

    type: Literal["tool_search_output_item"] = "tool_search_output_item"


@dataclass(eq=False)
class MCPListToolsItem(RunItemBase, event="mcp_list_tools"):
    """The tools of a hosted MCP server."""

    type: Literal["mcp_list_tools_item"] = "mcp_list_tools_item"


@dataclass(eq=False)
class MCPApprovalRequestItem(RunItemBase, event="mcp_approval_requested"):
    """A hosted MCP server's question whether a call may be made."""

    type: Literal["mcp_approval_request_item"] = "mcp_approval_request_item"


@dataclass(eq=False)
class MCPApprovalResponseItem(RunItemBase, event="mcp_approval_response"):
    """The answer to such a question."""

    type: Literal["mcp_approval_response_item"] = "mcp_approval_response_item"


@dataclass(eq=False)
class CompactionItem(RunItemBase):
    """A history made short by the server."""

    type: Literal["compaction_item"] = "compaction_item"


@dataclass(eq=False)
class InputItem(RunItemBase):
    """Input that the user added to a paused run."""

    type: Literal["input_item"] = "input_item"
    input_id: str = field(default_factory=lambda: uuid4().hex)


RunItem: TypeAlias = (
    MessageOutputItem
    | ReasoningItem
    | HandoffCallItem
    | HandoffOutputItem
    | ToolCallItem
    | ToolCallOutputItem
    | ToolApprovalItem
    | ToolSearchCallItem
    | ToolSearchOutputItem
    | MCPListToolsItem
    | MCPApprovalRequestItem
    | MCPApprovalResponseItem
    | CompactionItem
    | InputItem
)


# type of an output item -> its class, where it is no call and no output of one
OF_MODEL: dict[str, Callable[[Agent[Any], Any], RunItem]] = {
    "message": MessageOutputItem,
    "reasoning": ReasoningItem,
    "compaction": CompactionItem,
    "tool_search_call": ToolSearchCallItem,
    "tool_search_output": ToolSearchOutputItem,
    "mcp_list_tools": MCPListToolsItem,
    "mcp_approval_request": MCPApprovalRequestItem,
}


def as_input(raw_item: Any) -> Json:
    """Return an output item as an input item: what the API only gives is left out. A new dict."""
    said: Any = plain(raw_item)
    if not said or not is_dict(said):
        raise AgentsException(f"a raw item is {type(raw_item).__name__}: it is an openai object or a mapping")
    return input_item(said)


def call_id_of(raw_item: Any) -> str | None:
    """Return the id of a call or of its output."""
    found = _read(raw_item, "call_id") or _read(raw_item, "id")
    return None if found is None else str(found)


def _read(raw_item: Any, name: str) -> Any:
    return raw_item.get(name) if isinstance(raw_item, Mapping) else getattr(raw_item, name, None)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def _parts(message: Any) -> list[Mapping[str, Any]]:
    """Return the parts of a message; none of anything else."""
    held = fields(message)
    return [fields(part) for part in held.get("content") or ()] if held.get("type") == "message" else []


def _text(message: Any, type: str, key: str) -> str | None:
    return "".join(part.get(key) or "" for part in _parts(message) if part.get("type") == type) or None


class ItemHelpers:
    """Readers of messages and outputs, by the names that users of the OpenAI Agents SDK know."""

    @classmethod
    def extract_last_content(cls, message: Any) -> str:
        """Return the text or refusal of a message's last part; "" of anything else."""
        parts = _parts(message)
        return (parts[-1].get("text") or parts[-1].get("refusal") or "") if parts else ""

    @classmethod
    def extract_last_text(cls, message: Any) -> str | None:
        """Return the text of a message's last part; None where it is none."""
        parts = _parts(message)
        return parts[-1].get("text") if parts and parts[-1].get("type") == "output_text" else None

    @classmethod
    def extract_text(cls, message: Any) -> str | None:
        """Return all text of a message; None where there is none."""
        return _text(message, "output_text", "text")

    @classmethod
    def extract_refusal(cls, message: Any) -> str | None:
        """Return what a message refuses with; None where it does not."""
        return _text(message, "refusal", "refusal")

    @classmethod
    def input_to_new_input_list(cls, input: str | Sequence[Any]) -> list[Json]:
        """Return input as a new list of items; text is a user's message."""
        return [{"content": input, "role": "user"}] if isinstance(input, str) else plain(list(input))

    @classmethod
    def text_message_outputs(cls, items: Sequence[RunItem]) -> str:
        """Return the text of all messages."""
        return "".join(cls.text_message_output(item) for item in items if isinstance(item, MessageOutputItem))

    @classmethod
    def text_message_output(cls, message: MessageOutputItem) -> str:
        """Return the text of a message."""
        return cls.extract_text(message.raw_item) or ""

    @classmethod
    def tool_call_output_item(
        cls, tool_call: Any, output: Any, *, output_json_schema: Json | None = None, output_type_adapter: Any = None
    ) -> Json:
        """Return the function_call_output for a call; a call that a program made passes its `caller` on.

        Raises UserError where the output does not fit the schema that the tool declares.
        """
        written = _written(tool_call, output, output_json_schema, output_type_adapter)
        item: Json = {"call_id": call_id_of(tool_call), "output": written, "type": "function_call_output"}
        return with_caller(tool_call, item)


def with_caller(tool_call: Any, item: Json) -> Json:
    """Return an output item with the `caller` that its call has."""
    caller = _read(tool_call, "caller")
    return item if caller is None else {**item, "caller": plain(caller)}


def _written(tool_call: Any, output: Any, schema: Json | None, adapter: Any) -> str | list[Json]:
    if schema is not None or adapter is not None:
        return _object_text(output, adapter)
    if isinstance(output, str):
        return output
    by_program = fields(_read(tool_call, "caller")).get("type") == "program"
    written = output_payload(output)
    return json.dumps(plain(output), ensure_ascii=False) if by_program and isinstance(written, str) else written


def _object_text(output: Any, adapter: Any) -> str:
    """Return the JSON text of an output that must be an object."""
    from pydantic import TypeAdapter, ValidationError

    from antiphon.exceptions import UserError

    read: TypeAdapter[Any] = adapter or TypeAdapter(Any)
    check: Callable[[Any], Any] = read.validate_json if isinstance(output, str) else read.validate_python
    try:
        held = read.dump_python(check(output), mode="json", by_alias=True)
    except ValidationError as error:
        raise UserError("Function tool output does not match its declared output schema.") from error
    if not isinstance(held, dict):
        raise UserError(
            f"Function tool output schema requires a JSON object; the output is {type(output).__name__}. "
            "Return a mapping or a model, or declare no output schema"
        )
    return json.dumps(held, ensure_ascii=False, separators=(",", ":"))
