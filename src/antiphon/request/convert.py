"""`to_chat_request`: a Responses request in, a Chat Completions request out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from antiphon.errors import BadInput
from antiphon.profile import DEFAULT, Profile, load_profile
from antiphon.stream.chunk import Unreadable, fields, is_object

from .callids import CallIds
from .choice import choose
from .content import Scope, joined, plain_text
from .entries import Entry, Message
from .history import Dialect, read_history
from .items import BringsTools, kind_of, read_item
from .names import Names
from .params import carry_params, carry_stream, carry_text
from .read import Json, entries, record, settled
from .replay import family_of
from .report import BadRequest, Change, Report, path_of
from .restore import Restore
from .thoughts import must_think, put_back, rider
from .tools import declare, functions, offers
from .turns import Orphans, Turns
from .usual import usual_content, usual_output

NOTHING_TO_RESTORE = Restore({}, {})
DEEP = "it is nested deeper than can be read"
_UNWRITABLE = (RecursionError, Unreadable, ValueError)  # Python raises the last for numbers of thousands of digits
# roles, beside the assistant, of the messages that stay where they stand, under their own name
USER, USER_SYSTEM, ALL = frozenset({"user"}), frozenset({"user", "system"}), frozenset({"user", "system", "developer"})


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A Chat Completions request. What is nested in `body` may be shared with the request it was made from.

    `body`: the create parameters. `restore`: applied to the answer, it gives the items and events that the client
    knows.
    """

    body: dict[str, Any]
    restore: Restore
    _report: Report = field(repr=False, compare=False)

    @property
    def report(self) -> tuple[Change, ...]:
        """All that is not in the body as it came, in order."""
        return self._report.changes()

    @property
    def losses(self) -> list[Change]:
        """Of the report what is lost, and what strict would refuse: all that is dropped or weakened."""
        return self._report.losses()


def to_chat_request(
    request: Any,
    *,
    profile: str | Profile | None = None,
    stream: bool = False,
    strict: bool = False,
    orphans: Orphans = "repair",
) -> ChatRequest:
    """Return the chat request for `request`, the Responses create parameters: a mapping or an object, mixed inside.

    `profile`: what the backend takes, by name or as a value; None is OpenAI's own. `stream`: a stream is asked for,
    also where the request does not. `strict`: what cannot be carried raises BadRequest; else it is reported.
    `orphans`: "repair" gives an output to a call that has none and drops an output that no call waits for; "error"
    raises. The request is never changed; time and memory grow with the number of items alone.

    Raises BadRequest, which names the parameter, where the request cannot be sent: what is malformed, a tool choice
    that forces what no chat backend has, no message at all.
    """
    if orphans not in ("repair", "error"):
        raise BadInput(f'orphans={orphans!r}: it is "repair" or "error"')
    held = record(request, "request")
    if held.get("tools"):
        held = {**held, "tools": _tools(held["tools"])}
    items = _items(held)
    known = _profile(profile)
    try:
        try:
            return _converted(held, items, None, Scope(known, Report(strict=strict), Names()), orphans, stream)
        except BringsTools:
            items[:] = [_again(item) for item in items]
            scope = Scope(known, Report(strict=strict), Names())
            return _converted(held, items, items, scope, orphans, stream)
    except _UNWRITABLE as problem:
        raise BadRequest("request", _unwritable(problem)) from None


def _converted(
    held: Json, items: list[Any], bearers: list[Any] | None, scope: Scope, orphans: Orphans, stream: bool
) -> ChatRequest:
    """Return the chat request. `bearers`: the items whose tools are offered too; None where none should bring any."""
    offered = offers(held.get("tools"), bearers or (), scope)
    if offered:
        declare(offered, scope)
    ids = CallIds(scope)
    turns = _turns(scope, ids, orphans)
    read_history(items, turns, _dialect(items, scope, ids, tools_read=bearers is not None))
    history = turns.finish()
    kept, choice = choose(held.get("tool_choice"), offered, scope)
    tools = functions(kept, scope) if kept else []
    form: dict[str, Any] = {}
    said = carry_text(held, scope, form, tools=bool(tools))
    put_back(turns, scope, tools=bool(tools))
    first = _first(_instructions(held, said, scope), turns.leading, scope)
    if not first and not history:
        raise BadRequest("input", "there is nothing in it that can be sent")
    body: dict[str, Any] = {"model": held["model"]} if held.get("model") else {}
    body["messages"] = [{"role": "system", "content": first}, *history] if first else history
    body |= _with_tools(tools, choice, held, scope) | form
    carry_params(held, scope, body)
    carry_stream(held, scope, body, stream=stream)
    return ChatRequest(body, _restore(scope, ids.originals()), scope.report)


def _profile(profile: str | Profile | None) -> Profile:
    if profile is None:
        return DEFAULT
    return load_profile(profile) if isinstance(profile, str) else profile


def _items(held: Json) -> list[Any]:
    given = held.get("input")
    return [{"role": "user", "content": given}] if isinstance(given, str) else [*entries(given, "input")]


def _tools(given: Any) -> list[Any]:
    """Return the tools as a list; those that hold tools can be read again."""
    return [_again(one) if "tools" in fields(one) else one for one in entries(given, "tools")]


def _again(one: Any) -> Any:
    """Return an object that can be read once more: what it holds as a generator, as a list."""
    return settled(fields(one)) if is_object(one) else one


def _turns(scope: Scope, ids: CallIds, orphans: Orphans) -> Turns:
    profile = scope.profile
    return Turns(
        scope.report,
        ids,
        orphans,
        null=None if profile.null_content_with_calls else "",
        hoist=profile.single_leading_system,
        thinks=profile.reasoning_replay != "none",
        ride=rider(scope),
        signs=profile.thought_signatures,
        begun=[] if must_think(scope) else None,
    )


def _dialect(items: list[Any], scope: Scope, ids: CallIds, *, tools_read: bool) -> Dialect:
    profile = scope.profile
    roles = USER if profile.single_leading_system else ALL if profile.developer_role else USER_SYSTEM
    return Dialect(
        lambda _, number: _entries(items, number, scope, tools_read=tools_read),
        usual_content(profile),
        usual_output(profile),
        scope.names.functions,
        scope.names.customs,
        scope.names.called,
        roles,
        True,
        ids.fits,
    )


def _entries(items: list[Any], number: int, scope: Scope, *, tools_read: bool) -> list[Entry]:
    """Return what an item says, read to its end. `items` are ours: they hold what was read, which can be read again."""
    items[number] = item = record(items[number], f"input[{number}]")
    try:
        return list(read_item(item, number, scope, tools_read=tools_read))
    except _UNWRITABLE as problem:
        raise BadRequest(f"input[{number}]", _unwritable(problem)) from None


def _unwritable(problem: Exception) -> str:
    return DEEP if isinstance(problem, RecursionError) else f"it holds what cannot be written: {problem}"


def _first(instructions: str, leading: Sequence[Message], scope: Scope) -> str:
    """Return what the first message says: the instructions, and what is to lead."""
    if not leading:
        return instructions
    for message in leading:
        if message.role == "developer":
            scope.report.changed(f"{path_of(message.place)}.role", "developer", "system", "one message leads")
    texts = [instructions, *(message.content for message in leading if isinstance(message.content, str))]
    return "\n\n".join(text for text in texts if text)


def _instructions(held: Json, said: str, scope: Scope) -> str:
    """Return the instructions (a string, or messages as a response echoes them), and what else is said in words."""
    given = held.get("instructions")
    if given is None:
        return said
    texts = [given] if isinstance(given, str) else []
    for number, one in enumerate([] if isinstance(given, str) else entries(given, "instructions")):
        texts.append(_instruction(one, f"instructions[{number}]", scope))
    return joined([*texts, said])


def _instruction(one: Any, path: str, scope: Scope) -> str:
    """Return what a message among the instructions says. What is no message of theirs is reported."""
    held = record(one, path)
    if (kind := kind_of(held, path)) != "message":
        scope.report.dropped(path, kind, "instructions are messages")
        return ""
    return plain_text(held.get("content"), path, scope)


def _with_tools(tools: list[dict[str, Any]], choice: Any, held: Json, scope: Scope) -> dict[str, Any]:
    """Return what is sent about tools: nothing at all where there are none."""
    if not tools:
        return {}
    made: dict[str, Any] = {"tools": tools}
    if choice is not None:
        made["tool_choice"] = choice
    parallel = held.get("parallel_tool_calls")
    if parallel is not None and scope.profile.parallel_tool_calls:
        made["parallel_tool_calls"] = parallel
    elif parallel is False:
        why = f"profile {scope.profile.name!r} cannot forbid several calls at once"
        scope.report.dropped("parallel_tool_calls", "false", why)
    return made


def _restore(scope: Scope, call_ids: Json) -> Restore:
    family = "" if scope.profile.name == DEFAULT.name and not scope.profile.family else family_of(scope.profile)
    tools = scope.names.restorable()
    return Restore(tools, call_ids, family) if tools or call_ids or family else NOTHING_TO_RESTORE
