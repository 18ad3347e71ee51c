"""Puts earlier reasoning back into the assistant messages that it led to, where the backend takes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from antiphon.stream.chunk import fields, is_object, word

from .content import Scope, text_part
from .entries import Thought
from .read import NOTHING, Json
from .replay import FAMILY, NOTHING_THOUGHT, TEXTS, call_fields, family_of, replayed, usual_details, usual_text
from .report import Place, path_of
from .turns import ChatMessage, Ride, Turns

NOT_NOW = "the backend takes back that of the current tool calls alone"


def must_think(scope: Scope) -> bool:
    """Return whether the backend refuses, beside tools, an assistant message without reasoning."""
    return scope.profile.reasoning_replay == "reasoning_content" and scope.profile.reasoning_replay_always


def rider(scope: Scope) -> Ride | None:
    """Return what puts on a call what came beside it; None where the backend wants nothing there."""
    signs, pieces = scope.profile.thought_signatures, scope.profile.reasoning_replay == "reasoning_details"
    if not signs and not pieces:
        return None
    family = family_of(scope.profile)

    def sign(turns: Turns, call: dict[str, Any], given: Any, place: Place) -> None:
        if given.__class__ is not dict or not _sign(call, given, family):
            first = turns.open is not None and turns.open["tool_calls"][0] is call
            call.update(call_fields(fields(given) if is_object(given) else NOTHING, place, scope, first=first))

    def keep(turns: Turns, call: dict[str, Any], given: Any, place: Place) -> None:
        data = fields(given) if is_object(given) else NOTHING
        if turns.open is None or not data.get("reasoning_details"):
            return
        if word(data.get(FAMILY)) in ("", family):
            turns.beside(turns.open, data)
        else:
            scope.report.ignored(path_of(place), "reasoning beside a call", f"it is not of {family}")

    def both(turns: Turns, call: dict[str, Any], given: Any, place: Place) -> None:
        sign(turns, call, given, place)
        keep(turns, call, given, place)

    return both if signs and pieces else sign if signs else keep


def _sign(call: dict[str, Any], data: Json, family: str) -> bool:
    """Put a thought signature of this family, in its usual form, on its call. Return whether that was all."""
    if "provider_specific_fields" in data or ("family" in data and data["family"] not in ("", None, family)):
        return False
    if "extra_content" in data:
        extra = data["extra_content"]
        if extra.__class__ is not dict or not extra:
            return False
        call["extra_content"] = extra
        return True
    signature = data.get("thought_signature")
    if signature.__class__ is not str or not signature:
        return False
    call["extra_content"] = {"google": {"thought_signature": signature}}
    return True


def put_back(turns: Turns, scope: Scope, *, tools: bool) -> None:
    """Put the reasoning of the turns into their messages; report what stays out. `tools`: some are offered."""
    now = None if scope.profile.reasoning_replay_always or not turns.reasoned else _current(turns)
    field = scope.profile.reasoning_replay if scope.profile.reasoning_replay in TEXTS else ""
    details, family = scope.profile.reasoning_replay == "reasoning_details", family_of(scope.profile)
    for reasoned in turns.reasoned:
        if now is not None and id(reasoned.message) not in now:
            _leave(reasoned.thoughts, scope)
        elif field and (text := usual_text(reasoned.thoughts, family)):
            reasoned.message[field] = text
        elif details and not reasoned.riding and (pieces := usual_details(reasoned.thoughts, family)):
            _put({"reasoning_details": pieces}, reasoned.message)
        else:
            _put(replayed(reasoned.thoughts, reasoned.riding, scope), reasoned.message)
    if tools and must_think(scope):
        _fill(turns.begun or (), scope)


def _current(turns: Turns) -> set[int]:
    """Return the messages after the last one of the user, by identity; none of them where no call is among them."""
    found: set[int] = set()
    calls = False
    for message in reversed(turns.made):
        if message is turns.asked:
            break
        found.add(id(message))
        calls = calls or "tool_calls" in message
    return found if calls else set()


def _put(thinking: dict[str, Any], message: ChatMessage) -> None:
    """Put the fields before the calls of the message, and thinking parts before its text."""
    parts = thinking.pop("content", None)
    calls = message.pop("tool_calls", None)
    if parts:
        text = message["content"]
        message["content"] = [*parts, text_part(text)] if text else parts
    message.update(thinking)
    if calls is not None:
        message["tool_calls"] = calls


def _fill(begun: Iterable[tuple[ChatMessage, Place]], scope: Scope) -> None:
    for message, place in begun:
        if "reasoning_content" not in message:
            why = "the backend wants some"
            scope.report.add("made", path_of(place), "an answer without reasoning", "empty reasoning", why)
            _put({"reasoning_content": NOTHING_THOUGHT}, message)


def _leave(thoughts: Iterable[Thought], scope: Scope) -> None:
    for thought in thoughts:
        scope.report.ignored(thought.path, "reasoning", NOT_NOW)
