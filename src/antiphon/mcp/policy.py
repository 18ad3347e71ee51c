"""Which tools of an MCP server an agent sees, and which of them are asked about before they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from antiphon.exceptions import UserError
from antiphon.logger import logger
from antiphon.run.awaiting import MaybeAwaitable, settled
from antiphon.run.reading import is_dict, is_list

if TYPE_CHECKING:
    from antiphon.run.context import RunContextWrapper
    from antiphon.tools.tool import NeedsApproval


class ToolFilterStatic(TypedDict, total=False):
    """Names of tools: only those allowed are seen, if that is given, and never those blocked."""

    allowed_tool_names: list[str]
    blocked_tool_names: list[str]


@dataclass
class ToolFilterContext:
    """For whom the tools are listed."""

    run_context: RunContextWrapper[Any]
    agent: Any
    server_name: str


class ToolNames(TypedDict, total=False):
    """Names of tools."""

    tool_names: list[str]


class RequireApprovalLists(TypedDict, total=False):
    """Which tools are always asked about, and which never."""

    always: ToolNames
    never: ToolNames


Word: TypeAlias = Literal["always", "never"]
ToolFilterCallable: TypeAlias = Callable[[ToolFilterContext, Any], MaybeAwaitable[bool]]
ToolFilter: TypeAlias = ToolFilterStatic | ToolFilterCallable | None
LocalMCPApprovalCallable: TypeAlias = Callable[["RunContextWrapper[Any]", Any, Any], MaybeAwaitable[bool]]
RequireApproval: TypeAlias = (
    Word | bool | RequireApprovalLists | Mapping[str, Word] | Mapping[str, bool] | LocalMCPApprovalCallable | None
)
Policy: TypeAlias = bool | dict[str, bool] | LocalMCPApprovalCallable

WORDS: dict[Any, bool] = {"always": True, "never": False, True: True, False: False}


def create_static_tool_filter(
    allowed_tool_names: list[str] | None = None, blocked_tool_names: list[str] | None = None
) -> ToolFilterStatic | None:
    """Return the filter for these names; None where neither is given."""
    made: ToolFilterStatic = {}
    if allowed_tool_names is not None:
        made["allowed_tool_names"] = allowed_tool_names
    if blocked_tool_names is not None:
        made["blocked_tool_names"] = blocked_tool_names
    return made or None


async def seen(tools: list[Any], tool_filter: ToolFilter, server_name: str, run_context: Any, agent: Any) -> list[Any]:
    """Return the tools that pass the filter.

    Raises UserError where the filter is a function and nobody said for whom the tools are listed. A tool for which the
    function raises is left out, and that is logged.
    """
    if tool_filter is None:
        return tools
    if not callable(tool_filter):
        allowed, blocked = tool_filter.get("allowed_tool_names"), tool_filter.get("blocked_tool_names") or ()
        return [one for one in tools if (allowed is None or one.name in allowed) and one.name not in blocked]
    if run_context is None or agent is None:
        raise UserError("a tool_filter that is a function needs a run_context and an agent: list_tools(context, agent)")
    context = ToolFilterContext(run_context, agent, server_name)
    return [one for one in tools if await _passes(tool_filter, context, one)]


async def _passes(tool_filter: ToolFilterCallable, context: ToolFilterContext, tool: Any) -> bool:
    try:
        return bool(await settled(tool_filter(context, tool)))
    except Exception as error:  # noqa: BLE001  # whatever a filter raises: it did not let the tool through
        what = type(error).__name__  # its words may hold what only the filter may know
        logger.error(
            "the tool_filter of %s raised %s for the tool %s: it is left out", context.server_name, what, tool.name
        )
        return False


def policy_of(require_approval: RequireApproval) -> Policy:
    """Return the setting in one form. Raises UserError for what is none."""
    if callable(require_approval):
        return require_approval
    if require_approval is None:
        return False
    if not is_dict(require_approval):
        return _asked(require_approval, "require_approval")
    if any(is_dict(require_approval.get(word)) for word in ("always", "never")):
        return _of_lists(require_approval)
    return {name: _asked(word, f"require_approval[{name!r}]") for name, word in require_approval.items()}


def needs_approval(policy: Policy, tool: Any, agent: Any) -> NeedsApproval:
    """Return what a function tool has for it. A function is asked for each call; without an agent all are asked about."""
    if not callable(policy):
        return policy.get(tool.name, False) if isinstance(policy, dict) else policy
    if agent is None:
        return True

    async def asked(run_context: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
        return bool(await settled(policy(run_context, agent, tool)))

    return asked


def _asked(word: Any, place: str) -> bool:
    if not isinstance(word, str | bool) or word not in WORDS:
        raise UserError(f"{place} is {word!r}: 'always', 'never', a bool, names of tools, or a function")
    return WORDS[word]


def _of_lists(lists: dict[str, Any]) -> dict[str, bool]:
    stray = sorted(set(lists) - {"always", "never"})
    always, never = (_names(lists.get(word, {}), word) for word in ("always", "never"))
    both = sorted(always & never)
    if stray or both:
        what = f"has {', '.join(stray)} beside always and never" if stray else f"names {', '.join(both)} in both lists"
        raise UserError(f"require_approval {what}")
    return {**dict.fromkeys(always, True), **dict.fromkeys(never, False)}


def _names(held: Any, word: str) -> set[str]:
    names = held.get("tool_names", []) if is_dict(held) else None
    if not is_list(names) or not all(isinstance(name, str) for name in names):
        raise UserError(f'require_approval[{word!r}] must be {{"tool_names": [names]}}')
    return set(names)
