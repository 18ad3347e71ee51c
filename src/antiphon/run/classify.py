"""A model's answer, read once: which run items it is, and what is left to do about them.

output item -> (class of the run item, what has to be done)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from antiphon.exceptions import ModelBehaviorError, UserError
from antiphon.logger import logger
from antiphon.stream.chunk import fields, plain
from antiphon.tools.computer import ComputerTool
from antiphon.tools.editor import ApplyPatchTool
from antiphon.tools.hosted import HostedMCPTool, ProgrammaticToolCallingTool
from antiphon.tools.local import ApprovableTool, CustomTool, LocalTool
from antiphon.tools.shell import LocalShellTool, ShellTool
from antiphon.tools.tool import FunctionTool, ToolOrigin, ToolOriginType

from .agent import Agent
from .approvals import Invocation, Ledger, qualified
from .config import RunConfig
from .handoffs import Handoff
from .items import OF_MODEL, HandoffCallItem, ReasoningItem, RunItem, ToolCallItem, ToolCallOutputItem, call_id_of


@dataclass(frozen=True, slots=True)
class ToolRun:
    """A call that a tool of the agent answers."""

    call: Any
    tool: FunctionTool | LocalTool


@dataclass(frozen=True, slots=True)
class HandoffRun:
    """A call that hands over to another agent."""

    call: Any
    handoff: Handoff[Any, Any]


@dataclass(frozen=True, slots=True)
class UnknownTool:
    """A call of a tool that the agent does not have; `name` is the qualified one."""

    call: Any
    name: str


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A hosted MCP server's question whether a call may be made."""

    call: Any
    tool: HostedMCPTool


Work: TypeAlias = ToolRun | UnknownTool | ApprovalRequest


@dataclass(slots=True)
class Answer:
    """What a model's answer is: its items, the calls to make, the handoffs, in the model's order; the tools it used."""

    items: list[RunItem] = field(default_factory=list[Any])
    work: list[Work] = field(default_factory=list[Any])
    handoffs: list[HandoffRun] = field(default_factory=list[Any])
    used: list[str] = field(default_factory=list[str])
    repeated: bool = False  # a call that was answered before came again, and was left out
    cut: bool = False  # the answer ended before its time

    def add(self, item: RunItem, work: Work | None = None, used: str | None = None) -> None:
        """Add an item, what is to be done about it, and the name of the tool that it is a use of."""
        self.items.append(item)
        if work is not None:
            self.work.append(work)
        if used:
            self.used.append(used)

    def check_recipients(self, before: Sequence[RunItem], ledger: Ledger) -> None:
        """Raise UserError where a call without an output would go elsewhere than it was to go `before`.

        Whoever decided about it decided about that tool: not about one that has its name by now. A rejected call goes
        nowhere.
        """
        done = {item.call_id for item in before if isinstance(item, ToolCallOutputItem)}
        then = {call_id_of(item.raw_item): _recipient(item) for item in before if isinstance(item, CALLS)}
        for item in self.items:
            call_id = call_id_of(item.raw_item)
            was = then.get(call_id) if isinstance(item, CALLS) and call_id not in done else None
            now = _recipient(item)
            if was is None or now in (None, was):
                continue
            call = Invocation.of(item.raw_item)
            if (
                isinstance(item, HandoffCallItem)
                or ledger.status(call.tool, call.call_id, item.agent.name) is not False
            ):
                raise UserError(
                    f"the call {call_id!r} was for {_told(was)}, and now it would be for {_told(now)}: "
                    "give the agent what it had, or run anew"
                )


CALLS = (ToolCallItem, HandoffCallItem)
# type of a call that the server has run itself, or of an output that it brings -> the name of its tool, and the key of
# what that returned
SERVED: dict[str, tuple[str, str | None]] = {
    "web_search_call": ("web_search", None),
    "file_search_call": ("file_search", None),
    "code_interpreter_call": ("code_interpreter", None),
    "image_generation_call": ("image_generation", None),
    "mcp_call": ("mcp", None),
    "program": ("programmatic_tool_calling", None),
    "program_output": ("programmatic_tool_calling", "result"),
    "shell_call_output": ("shell", "output"),
    "apply_patch_call_output": ("apply_patch", "output"),
    "computer_call_output": ("computer", "output"),
    "function_call_output": ("", "output"),
    "custom_tool_call_output": ("", "output"),
}
# type of a call -> the tools that can answer it, the first that the agent has, and what both are called in errors
LOCAL: dict[str, tuple[tuple[type[Any], ...], str, str]] = {
    "computer_call": ((ComputerTool,), "computer action", "a computer tool"),
    "local_shell_call": ((LocalShellTool, ShellTool), "local shell call", "a local shell tool"),
    "shell_call": ((ShellTool,), "shell call", "a shell tool"),
    "apply_patch_call": ((ApplyPatchTool,), "apply_patch call", "an apply_patch tool"),
}


@dataclass(frozen=True, slots=True)
class Offered:
    """What an agent offers its model: tools and handoffs, one of each name."""

    agent: Agent[Any]
    tools: list[Any]
    handoffs: list[Handoff[Any, Any]]

    def handoff_of(self, call: Any) -> Handoff[Any, Any] | None:
        """Return the handoff that a call is; None for a call of a tool. The one place where that is decided.

        A call with a namespace is never one: handoffs have none.
        """
        held = fields(call)
        if held.get("type") != "function_call" or held.get("namespace"):
            return None
        return next((one for one in self.handoffs if one.tool_name == held.get("name")), None)

    def function_of(self, name: str) -> FunctionTool | None:
        """Return the function tool of that qualified name."""
        return next((one for one in self.tools if isinstance(one, FunctionTool) and one.qualified_name == name), None)

    def first(self, *kinds: type[Any]) -> Any:
        """Return the first tool of one of these kinds, in the order of the kinds."""
        return next((one for kind in kinds for one in self.tools if isinstance(one, kind)), None)


def offer(agent: Agent[Any], tools: Iterable[Any], handoffs: Iterable[Handoff[Any, Any]], config: RunConfig) -> Offered:
    """Return what the model is offered; of two with one name the last. Raises UserError where the run forbids that."""
    named: dict[Any, Any] = {}
    for one in (*tools, *handoffs):
        key = one.tool_name if isinstance(one, Handoff) else _key(one)
        if key in named:
            _collide(str(key), agent, config)
        named[key] = one
    kept = list(named.values())
    return Offered(
        agent, [one for one in kept if not isinstance(one, Handoff)], [one for one in kept if isinstance(one, Handoff)]
    )


def _key(tool: Any) -> Any:
    """Return what may be there once: a name; hosted servers all have the same, so each is itself."""
    if isinstance(tool, FunctionTool):
        return tool.qualified_name
    return tool.name if isinstance(tool, CustomTool) else id(tool)


def _collide(name: str, agent: Agent[Any], config: RunConfig) -> None:
    told = f"agent {agent.name!r} has more than one tool or handoff named {name!r}"
    if config.tool_name_collision_policy == "error":
        raise UserError(f'{told}: rename one, or set tool_name_collision_policy to "warn", which keeps the last')
    logger.warning("%s; the last one is used", told)


def classify(output: Sequence[Any], offered: Offered, config: RunConfig, ledger: Ledger, programs: Programs) -> Answer:
    """Return what an answer's output is. Raises ModelBehaviorError for what the agent cannot answer.

    A call that was answered before, with the same id, name and arguments, is left out, with the reasoning before it.
    """
    answer = Answer()
    seen: set[str] = set()
    for raw in output:
        kind = str(fields(raw).get("type"))
        programs.check(raw, kind, offered)
        if (kind.endswith("_call") and kind not in SERVED and kind not in OF_MODEL) or kind == "mcp_approval_request":
            made = ledger.register(raw)
            call_id = str(fields(raw).get("call_id") or fields(raw).get("id"))
            if made.completed or call_id in seen:
                _leave_out(answer)
                continue
            seen.add(call_id)
        _take(answer, raw, kind, offered, config)
    return answer


def _recipient(item: RunItem) -> ToolOrigin | str | None:
    """Return what answers a call: what is behind a function, or a handoff; None for other tools, and where there is none."""
    if isinstance(item, HandoffCallItem):
        return "handoff"
    return item.tool_origin if isinstance(item, ToolCallItem) else None


def _told(recipient: ToolOrigin | str | None) -> str:
    match recipient:
        case ToolOrigin(mcp_server_name=str(server)):
            return f"a tool of the MCP server {server!r}"
        case ToolOrigin(agent_name=str(agent)):
            return f"the agent {agent!r} as a tool"
        case ToolOrigin():
            return "a function tool"
        case _:
            return "a handoff"


def _leave_out(answer: Answer) -> None:
    answer.repeated = True
    while answer.items and isinstance(answer.items[-1], ReasoningItem):
        answer.items.pop()


def _take(answer: Answer, raw: Any, kind: str, offered: Offered, config: RunConfig) -> None:
    agent = offered.agent
    if kind in OF_MODEL:
        asks = ApprovalRequest(raw, _mcp_server(raw, offered)) if kind == "mcp_approval_request" else None
        answer.add(OF_MODEL[kind](agent, raw), asks)
    elif kind in SERVED:
        tool, key = SERVED[kind]
        returned = None if key is None else plain(fields(raw).get(key))
        label = fields(raw).get("server_label") if kind == "mcp_call" else None
        origin = None if label is None else ToolOrigin(ToolOriginType.MCP, mcp_server_name=str(label))
        item = ToolCallItem(agent, raw, tool_origin=origin) if key is None else ToolCallOutputItem(agent, raw, returned)
        answer.add(item, used=tool)
    elif kind == "function_call":
        _take_function(answer, raw, offered, config)
    elif kind == "custom_tool_call":
        _take_custom(answer, raw, offered)
    elif kind in LOCAL:
        _take_local(answer, raw, kind, offered)
    else:
        logger.warning("an output item of type %r means nothing to a run: it is left out", kind)


def _take_function(answer: Answer, call: Any, offered: Offered, config: RunConfig) -> None:
    held = fields(call)
    handoff = offered.handoff_of(call)
    if handoff is not None:
        answer.add(HandoffCallItem(offered.agent, call), used=handoff.tool_name)
        answer.handoffs.append(HandoffRun(call, handoff))
        return
    name = qualified(str(held.get("name")), held.get("namespace"))
    tool = offered.function_of(name)
    if tool is not None:
        _check_caller(call, tool.allowed_callers, name)
        item = ToolCallItem(
            offered.agent, call, description=tool.description, title=tool.title, tool_origin=tool.origin
        )
        answer.add(item, ToolRun(call, tool), name)
    elif config.tool_not_found_behavior == "return_error_to_model":
        answer.add(ToolCallItem(offered.agent, call), UnknownTool(call, name), name)
    else:
        raise ModelBehaviorError(f"Tool {name} not found in agent {offered.agent.name}")


def _take_custom(answer: Answer, call: Any, offered: Offered) -> None:
    name = str(fields(call).get("name"))
    tool = next((one for one in offered.tools if isinstance(one, CustomTool) and one.name == name), None)
    if tool is None:
        raise ModelBehaviorError(f"Tool {name} not found in agent {offered.agent.name}")
    _check_caller(call, tool.allowed_callers, name)
    answer.add(ToolCallItem(offered.agent, call, description=tool.description), ToolRun(call, tool), name)


def _take_local(answer: Answer, call: Any, kind: str, offered: Offered) -> None:
    kinds, words, needed = LOCAL[kind]
    tool = offered.first(*kinds)
    if tool is None:
        raise ModelBehaviorError(f"Model produced {words} without {needed}.")
    if isinstance(tool, ApprovableTool):
        _check_caller(call, tool.allowed_callers, tool.name)
    hosted = isinstance(tool, ShellTool) and (tool.environment or {}).get("type") != "local"
    item = ToolCallItem(offered.agent, call, resolved_tool_name=tool.name)
    answer.add(item, None if hosted else ToolRun(call, tool), tool.name)


def _mcp_server(request: Any, offered: Offered) -> HostedMCPTool:
    label = fields(request).get("server_label")
    servers = (one for one in offered.tools if isinstance(one, HostedMCPTool))
    found = next((one for one in servers if one.tool_config.get("server_label") == label), None)
    if found is None:
        raise ModelBehaviorError(f"MCP server label {label} not found")
    return found


def _check_caller(call: Any, allowed: Sequence[str] | None, name: str) -> None:
    """Raise ModelBehaviorError where a tool is called by a program, or directly, and does not allow that."""
    caller = fields(fields(call).get("caller")).get("type") or "direct"
    told = "programmatic" if caller == "program" else str(caller)
    if told not in (allowed or ("direct",)):
        raise ModelBehaviorError(
            f"Model invoked tool {name} with caller {told}, but the tool allows only {list(allowed or ('direct',))}."
        )


@dataclass
class Programs:
    """The programs of a run: ids of those that were begun, and of those that ended.

    `elsewhere`: the server has a history that is not known here, and others may have been begun in it.
    """

    begun: set[str] = field(default_factory=set[str])
    ended: set[str] = field(default_factory=set[str])
    elsewhere: bool = False

    @classmethod
    def of(cls, items: Iterable[Any], *, elsewhere: bool = False) -> Programs:
        """Return the programs in what came before: raw items of the run, or input items of the caller."""
        found = cls(elsewhere=elsewhere)
        for held in map(fields, items):
            found.note(held, str(held.get("type")))
        return found

    def note(self, held: Mapping[str, Any], kind: str) -> None:
        """Note a program that begins or ends."""
        if kind == "program":
            self.begun.add(str(held.get("call_id")))
        elif kind == "program_output" and held.get("status") == "completed":
            self.ended.add(str(held.get("call_id")))

    def check(self, raw: Any, kind: str, offered: Offered) -> None:
        """Raise ModelBehaviorError for a program, or a call by one, that cannot be."""
        held = fields(raw)
        caller = fields(held.get("caller"))
        by_program = caller.get("type") == "program"
        if kind not in ("program", "program_output") and not by_program:
            return
        if offered.first(ProgrammaticToolCallingTool) is None:
            raise ModelBehaviorError(f"Model produced {kind} item without a programmatic_tool_calling tool.")
        parent = str(caller.get("caller_id") if by_program else held.get("call_id"))
        begun = self.elsewhere or parent in self.begun
        if kind != "program" and (not begun or parent in self.ended):
            raise ModelBehaviorError(
                f"Model produced {kind} item of program {parent!r}, which was not begun or has already ended."
            )
        self.note(held, kind)
