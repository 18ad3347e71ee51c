"""A history as `Converter` gives it: the turns of the request conversion, in the words that its callers expect."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from antiphon.exceptions import UserError
from antiphon.models.reasoning_content_replay import (
    MADE_HERE,
    ShouldReplayReasoningContent,
    asked_about,
    default_should_replay_reasoning_content,
)
from antiphon.profile import DEFAULT, Profile, profile_by_word
from antiphon.request.callids import CallIds
from antiphon.request.content import Odd, Scope, joined
from antiphon.request.history import Dialect, Find, read_history
from antiphon.request.items import Answer, Call, Entry, Message, Output, Thought, kind_of
from antiphon.request.names import Names, ToolKind
from antiphon.request.replay import REPLAYS, remember
from antiphon.request.report import BadRequest, Place, Report
from antiphon.request.turns import Reasoned, Turns
from antiphon.stream.chunk import fields, is_object, many, text_of, word

from .converter_content import Part, extract_all_content, extract_text_content

Json: TypeAlias = Mapping[str, Any]
ChatMessage: TypeAlias = dict[str, Any]
BLOCKS = Profile("blocks", reasoning_replay="thinking_blocks")
OMITTED = "[tool output omitted]"
ROLES = frozenset({"user", "system", "developer"})


@dataclass(frozen=True, slots=True)
class How:
    """What the caller of `items_to_messages` wants.

    `model`: where the messages go, which decides what reasoning goes back: DeepSeek's as `reasoning_content`, unless
    `should_replay_reasoning_content` says otherwise, Claude's signed blocks with `preserve_thinking_blocks`, Gemini's
    signatures with their calls.
    """

    model: str | None = None
    preserve_thinking_blocks: bool = False
    preserve_tool_output_all_content: bool = False
    base_url: str | None = None
    should_replay_reasoning_content: ShouldReplayReasoningContent | None = None
    strict_feature_validation: bool = False


class History:
    """Reads items as `Converter` gives them, and puts reasoning where the model that is named takes it back.

    Raises UserError for what chat cannot hold.
    """

    def __init__(self, how: How) -> None:
        self.how = how
        self.scope = Scope(BLOCKS, Report(strict=False), Names())
        profile = (profile_by_word(how.model) if how.model else None) or DEFAULT
        self.signs = profile.thought_signatures
        self.blocks = how.preserve_thinking_blocks and profile.reasoning_replay == "thinking_blocks"
        self.asks = how.should_replay_reasoning_content is not None or profile.reasoning_replay == "reasoning_content"

    def messages(self, items: str | Iterable[Any]) -> list[ChatMessage]:
        """Return the chat messages of the items. Called once."""
        if isinstance(items, str):
            return [{"role": "user", "content": items}]
        ride = self._ride if self.signs else None
        thinks = bool(self.how.model) and (self.asks or self.blocks)
        turns = Turns(self.scope.report, CallIds(self.scope), "keep", thinks=thinks, ride=ride)
        names: dict[Any, str] = {}
        find = _as_they_are(names)
        dialect = Dialect(self.read, _content, self._usual_output, names, None, find, ROLES, False)
        read_history(list(items), turns, dialect)
        made = turns.finish()
        if self.how.model is not None:
            self._put_back(turns.reasoned, self.how.model)
        for message in turns.refusing:
            if not message["content"] and "tool_calls" not in message:
                del message["content"]
        return made

    def read(self, item: Any, number: int) -> Iterable[Entry]:
        """Yield what the item says."""
        path = f"input[{number}]"
        held: Json = fields(item) if is_object(item) else {}
        try:
            kind = kind_of(held, path)
        except BadRequest:
            raise UserError(f"Unhandled item type or structure: {item}") from None
        match kind:
            case "message":
                yield self._message(held, path)
            case "function_call":
                data, arguments = fields(held.get("provider_data")), held.get("arguments") or "{}"
                yield Call(word(held.get("call_id")), word(held.get("name")), arguments, data, path)
            case "file_search_call":
                said = {"queries": held.get("queries", []), "status": held.get("status")}
                yield Call(word(held.get("id")), "file_search_call", json.dumps(said), {}, path)
            case "function_call_output":
                yield self._output(held, path)
            case "reasoning":
                yield Thought(held, path)
            case "item_reference":
                raise UserError(f"Encountered an item_reference, which is not supported: {item}")
            case "compaction":
                raise UserError("Compaction items are not supported for chat completions. Use the Responses API there")
            case _:
                raise UserError(f"Unhandled item type or structure: {item}")

    def _message(self, held: Json, path: str) -> Entry:
        role, content = held.get("role"), held.get("content") or ""
        if role == "assistant":
            return _answer(content, path)
        if role not in ("user", "system", "developer"):
            raise UserError(f"Unexpected role in a message: {role}")
        return Message(role, _content(role, content), path)

    def _output(self, held: Json, path: str) -> Entry:
        if held.get("call_id") is None:
            raise UserError(
                "Unpaired function outputs are supported by Responses but cannot be converted to Chat Completions "
                "tool messages. Use a Responses model to preserve this input."
            )
        kept = self._kept(held.get("output") or [])
        return Output(word(held["call_id"]), kept if isinstance(kept, str) else kept or self._omitted(), path)

    def _usual_output(self, output: Any) -> tuple[Any, list[Any]]:
        """Return the content of a tool's output that is a list: what is left of it is something, and so it is usual."""
        kept = self._kept(output) if output.__class__ is list else ""
        if not kept:
            raise Odd
        return kept, []

    def _kept(self, output: str | Iterable[Any]) -> str | list[Part]:
        """Return what a tool message holds of an output."""
        content = extract_all_content(output)
        if isinstance(content, str) or self.how.preserve_tool_output_all_content:
            return content
        return [part for part in content if part["type"] == "text"]

    def _omitted(self) -> str:
        said = (
            "Chat Completions tool outputs cannot be empty or contain only non-text content "
            "unless preserve_tool_output_all_content=True."
        )
        if self.how.strict_feature_validation:
            raise UserError(said)
        logging.getLogger("antiphon").warning(
            "%s Replacing the tool output with a placeholder; strict_feature_validation raises instead.", said
        )
        return OMITTED

    def _ride(self, turns: Turns, call: ChatMessage, given: Any, place: Place) -> None:
        """Put a thought signature on its call."""
        data: Json = fields(given) if is_object(given) else {}
        signature = data.get("thought_signature")
        if signature or data.get("extra_content"):
            call["extra_content"] = data.get("extra_content") or {"google": {"thought_signature": signature}}

    def _put_back(self, reasoned: Iterable[Reasoned], model: str) -> None:
        """Put the reasoning of the turns into their messages."""
        for one in reasoned:
            texts = [_summary(thought) for thought in one.thoughts if self._replays(thought, model)]
            if any(texts):
                one.message["reasoning_content"] = joined(texts)
            if self.blocks:
                self._sign(one, model)

    def _sign(self, one: Reasoned, model: str) -> None:
        memories = [remember(thought, self.scope) for thought in one.thoughts if _is_of(thought, model)]
        one.message.update(REPLAYS["thinking_blocks"](memories, one.riding, self.scope))
        if "thinking_blocks" in one.message:
            return
        parts = [part for thought in one.thoughts for part in _signed(thought, model)]
        if parts:
            text = one.message.get("content")
            one.message["content"] = [*parts, *([{"type": "text", "text": text}] if text else [])]

    def _replays(self, thought: Thought, model: str) -> bool:
        should = self.how.should_replay_reasoning_content or default_should_replay_reasoning_content
        return should(asked_about(thought.item, model, self.how.base_url))


def _answer(content: Any, path: str) -> Answer:
    texts: list[str] = []
    refusals: list[str] = []
    for part in [content] if isinstance(content, str) else content:
        held = {"type": "output_text", "text": part} if isinstance(part, str) else fields(part)
        if held.get("type") == "refusal":
            refusals.append(text_of(held.get("refusal")))
        elif held.get("type") in ("output_text", "input_text", "text"):
            texts.append(text_of(held.get("text")))
        elif held.get("type") == "output_audio":
            raise UserError(f"Only audio IDs are supported for chat completions, but got: {part}")
        else:
            raise UserError(f"Unknown content type in ResponseOutputMessage: {part}")
    return Answer(joined(texts), path, joined(refusals))


def _as_they_are(names: dict[Any, str]) -> Find:
    """Return what finds the names of functions, and keeps them: each is its own, whatever its namespace."""

    def find(kind: ToolKind, key: Any) -> str:
        pair: Any = key
        name = pair[1] if type(key) is tuple else pair
        if not isinstance(name, str) or not name:
            raise KeyError  # of what is no name
        names[key] = name
        return name

    return find


def _content(role: str, content: Any) -> Any:
    """Return the content of a message that is a list, in the parts of chat."""
    if role == "assistant":
        raise Odd
    return extract_all_content(content) if role == "user" else extract_text_content(content)


def _summary(thought: Thought) -> str:
    return joined(text_of(part) for part in many(thought.item.get("summary")))


def _is_of(thought: Thought, model: str) -> bool:
    """Return whether the model made it, or nothing says where it is from."""
    data = fields(thought.item.get("provider_data"))
    return word(data.get("model")) == model or not data.keys() - MADE_HERE


def _signed(thought: Thought, model: str) -> Iterable[dict[str, Any]]:
    """Yield thinking blocks that are told by text and signatures alone: one line of `encrypted_content` for each."""
    if not _is_of(thought, model):
        return
    signatures = iter(word(thought.item.get("encrypted_content")).split("\n"))
    for part in many(thought.item.get("content")):
        signature = next(signatures, "")
        block = {"type": "thinking", "thinking": text_of(part)}
        yield {**block, "signature": signature} if signature else block
