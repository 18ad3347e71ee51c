"""`tool_choice`, as the backend takes it. What it takes less of is said by offering fewer tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from antiphon.stream.chunk import fields, is_object, word

from .content import Scope
from .read import Json, described, entries, named, record
from .report import BadRequest
from .tools import CLIENT_TOOLS, Offer

Name: TypeAlias = tuple[str, str | None, str]  # as `Tool.identity`; without a namespace, in any of them
Mode: TypeAlias = Literal["auto", "none", "required"]
MODES: dict[str, Mode] = {"auto": "auto", "none": "none", "required": "required"}
PATH = "tool_choice"


def choose(choice: Any, offered: Sequence[Offer], scope: Scope) -> tuple[list[Offer], Any]:
    """Return the tools to offer, and chat's `tool_choice`: None where it is not to be sent.

    Raises BadRequest for a choice that forces what is not offered, as a hosted tool never is.
    """
    if choice is None:
        return list(offered), None
    if isinstance(choice, str):
        if choice not in MODES:
            raise BadRequest(PATH, f"one of {', '.join(MODES)} is expected, and here is {choice!r:.40}")
        return _mode(MODES[choice], list(offered), scope)
    held = record(choice, PATH)
    if held.get("type") == "allowed_tools":
        return _allowed(held, offered, scope)
    return _named(_chosen(held, _known(offered, scope), PATH), offered, scope)


def _mode(mode: Mode, offered: list[Offer], scope: Scope) -> tuple[list[Offer], Any]:
    accepted, profile = scope.profile.tool_choice_modes, scope.profile.name
    if not offered:
        if mode == "required":
            scope.report.dropped(PATH, "required", "no tools can be offered")
        return [], None
    if mode in accepted:
        return offered, mode
    if mode == "none":
        scope.report.changed(PATH, "none", "no tools", f"profile {profile!r} cannot forbid those that are offered")
        return [], None
    if mode == "required":
        scope.report.weakened(PATH, "required", "auto", f"profile {profile!r} cannot force a call")
    return offered, "auto" if "auto" in accepted else None


def _named(chosen: Offer, offered: Sequence[Offer], scope: Scope) -> tuple[list[Offer], Any]:
    if "named" in scope.profile.tool_choice_modes:
        name = scope.names.give(chosen.tool)
        return list(offered), {"type": "function", "function": {"name": name}}
    why = f"profile {scope.profile.name!r} cannot force a tool by name"
    scope.report.changed(PATH, f"tool {chosen.tool.name!r}", "the one tool that is offered", why)
    return _mode("required", [chosen], scope)


def _allowed(held: Json, offered: Sequence[Offer], scope: Scope) -> tuple[list[Offer], Any]:
    """Offer the allowed tools alone: few backends know a list of them."""
    inner = record(held["allowed_tools"], PATH) if is_object(held.get("allowed_tools")) else held
    mode = inner.get("mode") or "auto"
    if mode not in ("auto", "required"):
        raise BadRequest(f"{PATH}.mode", f"auto or required is expected, and here is {mode!r:.40}")
    wanted = {offer.tool.identity for offer in _wanted(inner.get("tools"), offered, scope)}
    kept = [offer for offer in offered if offer.tool.identity in wanted]
    if not kept:
        raise BadRequest(f"{PATH}.tools", "none of the allowed tools can be offered")
    if len(kept) < len(offered):
        scope.report.changed(PATH, "allowed_tools", "tools", "the allowed ones alone are offered")
    return _mode(MODES[mode], kept, scope)


def _wanted(tools: Any, offered: Sequence[Offer], scope: Scope) -> Iterable[Offer]:
    known = _known(offered, scope)
    spaces: dict[str, list[Offer]] = {}
    for offer in offered:
        spaces.setdefault(offer.tool.namespace or "", []).append(offer)
    for number, one in enumerate(entries(tools, f"{PATH}.tools")):
        path = f"{PATH}.tools[{number}]"
        held = record(one, path)
        if held.get("type") == "namespace":
            name = named(held, "name", path)
            if name not in spaces:
                scope.report.dropped(path, "an allowed namespace", f"no tools of {name!r:.80} can be offered")
            yield from spaces.get(name, ())
            continue
        try:
            yield _chosen(held, known, path)
        except BadRequest as error:
            scope.report.dropped(path, "an allowed tool", error.message)


def _known(offered: Iterable[Offer], scope: Scope) -> Mapping[Name, Offer]:
    """Return each tool by what a choice may call it: as it is declared, else by its name or chat name alone."""
    known: dict[Name, Offer] = {offer.tool.identity: offer for offer in offered}
    for offer in offered:
        group, _, name = offer.tool.identity
        known.setdefault((group, None, name), offer)
        known.setdefault((group, None, scope.names.give(offer.tool)), offer)
    return known


def _chosen(held: Json, known: Mapping[Name, Offer], path: str) -> Offer:
    """Return the tool that is meant. Raises BadRequest where it is not offered."""
    kind = held.get("type")
    if not isinstance(kind, str):
        raise BadRequest(f"{path}.type", f"the type of a tool is expected, and here is {described(kind)}")
    if kind not in ("function", "custom") and kind not in CLIENT_TOOLS:
        raise BadRequest(path, f"it names a tool of type {kind}, which no chat backend has")
    inner = fields(held.get(kind)) or held
    group, name = (kind, kind) if kind in CLIENT_TOOLS else ("", word(inner.get("name")))
    offer = known.get((group, word(inner.get("namespace")) or None, name))
    if offer is None:
        raise BadRequest(path, f"it names the tool {name!r:.80}, which is not among those that can be offered")
    return offer
