"""`to_chat_request`: a Responses request in, a Chat Completions request out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from antiphon.errors import BadInput
from antiphon.profile import DEFAULT, Profile, load_profile

from .choice import choose
from .content import Scope, joined, plain_text
from .items import read_items
from .messages import Messages
from .names import Names
from .params import carry_params, carry_stream, carry_text
from .plain import Plain, plain_messages
from .read import Json, entries, record
from .replay import family_of
from .report import BadRequest, Change, Report
from .restore import Restore
from .tools import declare, functions, offers
from .turns import Arrangement, Orphans


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A Chat Completions request. What is nested in `body` may be shared with the request it was made from.

    `body`: the create parameters. `report`: all that is not in it as it came. `restore`: applied to the answer, it
    gives the items and events that the client knows.
    """

    body: dict[str, Any]
    report: tuple[Change, ...]
    restore: Restore


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
    scope = Scope(_profile(profile), Report(strict=strict), Names())
    items = _items(held)
    plain = plain_messages(items, scope.profile)
    offered = offers(held.get("tools"), () if plain else items, scope)
    declare(offered, scope)
    kept, choice = choose(held.get("tool_choice"), offered, scope)
    tools = functions(kept, scope)
    body: dict[str, Any] = {"model": held["model"]} if held.get("model") else {}
    form: dict[str, Any] = {}
    said = carry_text(held, scope, form, tools=bool(tools))
    history = _plain(plain, held, said, scope)
    call_ids: Json = {}
    if not history:
        messages = Messages(scope, tools=bool(tools))
        history, call_ids = _history(held, items, said, messages, scope, orphans), messages.call_ids.originals()
    body["messages"] = history
    body |= _with_tools(tools, choice, held, scope) | form
    carry_params(held, scope, body)
    carry_stream(held, scope, body, stream=stream)
    return ChatRequest(body, scope.report.changes(), _restore(scope, call_ids))


def _profile(profile: str | Profile | None) -> Profile:
    if profile is None:
        return DEFAULT
    return load_profile(profile) if isinstance(profile, str) else profile


def _items(held: Json) -> list[Any]:
    given = held.get("input")
    return [{"role": "user", "content": given}] if isinstance(given, str) else entries(given, "input")


def _plain(plain: Plain | None, held: Json, said: str, scope: Scope) -> list[dict[str, Any]] | None:
    """Return the messages of a history that is plain, as most are; None for any other, and for an empty one."""
    if plain is None or any(scope.names.find("function", None, name) != name for name in plain.names):
        return None
    instructions = _instructions(held, said, scope)
    scope.report.take(plain.report)
    return [{"role": "system", "content": instructions}, *plain.messages] if instructions else plain.messages


def _history(
    held: Json, items: list[Any], said: str, messages: Messages, scope: Scope, orphans: Orphans
) -> list[dict[str, Any]]:
    arrangement = Arrangement(scope.report, orphans, hoist=scope.profile.single_leading_system)
    for entry in read_items(items, scope):
        arrangement.feed(entry)
    blocks = arrangement.blocks()
    made = messages.make(_instructions(held, said, scope), arrangement.leading, blocks)
    if not made:
        raise BadRequest("input", "there is nothing in it that can be sent")
    return made


def _instructions(held: Json, said: str, scope: Scope) -> str:
    """Return the instructions (a string, or messages as a response echoes them), and what else is said in words."""
    given = held.get("instructions")
    texts = [given] if isinstance(given, str) else []
    for number, one in enumerate([] if isinstance(given, str) else entries(given, "instructions")):
        path = f"instructions[{number}]"
        texts.append(plain_text(record(one, path).get("content"), path, scope))
    return joined([*texts, said])


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
    return Restore(scope.names.restorable(), call_ids, family)
