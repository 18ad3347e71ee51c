"""A history as `Converter` gives it: the turns of the request conversion, in the words that its callers expect."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from antiphon.exceptions import UserError
from antiphon.profile import DEFAULT, Profile
from antiphon.request.content import Scope, ToolContent, joined
from antiphon.request.items import Answer, Call, Message, Output, Thought, kind_of
from antiphon.request.names import Names
from antiphon.request.plain import plain_messages, text_alone
from antiphon.request.replay import REPLAYS, remember
from antiphon.request.report import BadRequest, Report
from antiphon.request.turns import Arrangement, Turn
from antiphon.stream.chunk import fields, is_object, many, text_of, word

from .chatcmpl_content import extract_all_content, extract_text_content
from .reasoning_content_replay import (
    MADE_HERE,
    ReasoningContentReplayContext,
    ReasoningContentSource,
    ShouldReplayReasoningContent,
    default_should_replay_reasoning_content,
)

ChatMessage = dict[str, Any]
BLOCKS = Profile("blocks", reasoning_replay="thinking_blocks")
OMITTED = "[tool output omitted]"
CLAUDE = ("claude", "anthropic")
THINKERS = ("deepseek", *CLAUDE)


@dataclass(frozen=True, slots=True)
class How:
    """What the caller of `items_to_messages` wants."""

    model: str | None = None
    preserve_thinking_blocks: bool = False
    preserve_tool_output_all_content: bool = False
    base_url: str | None = None
    should_replay: ShouldReplayReasoningContent | None = None
    strict: bool = False

    @property
    def replays_some(self) -> bool:
        """Whether reasoning may go back."""
        model = (self.model or "").lower()
        return bool(model) and (self.should_replay is not None or any(one in model for one in THINKERS))


@dataclass(slots=True)
class History:
    """Takes items in order; `messages()` returns the chat messages. Calls without output stay as they are."""

    how: How
    _scope: Scope = field(default_factory=lambda: Scope(DEFAULT, Report(strict=False), Names()))
    _refusals: dict[str, str] = field(default_factory=dict[str, str])  # path of an answer -> what was refused
    _arrangement: Arrangement = field(init=False)

    def __post_init__(self) -> None:
        self._arrangement = Arrangement(self._scope.report, "keep", hoist=False)

    def feed(self, number: int, item: Any) -> None:
        """Take the next item. Raises UserError for what chat cannot hold."""
        path = f"input[{number}]"
        held: Mapping[str, Any] = fields(item) if is_object(item) else {}
        try:
            kind = kind_of(held, path)
        except BadRequest:
            raise UserError(f"Unhandled item type or structure: {item}") from None
        match kind:
            case "message":
                self._message(held, path)
            case "function_call":
                arguments = held.get("arguments") or "{}"
                data = fields(held.get("provider_data"))
                call = Call(word(held.get("call_id")), word(held.get("name")), arguments, data, path)
                self._arrangement.feed(call)
            case "file_search_call":
                said = {"queries": held.get("queries", []), "status": held.get("status")}
                self._arrangement.feed(Call(word(held.get("id")), "file_search_call", json.dumps(said), {}, path))
            case "function_call_output":
                self._output(held, path)
            case "reasoning":
                self._arrangement.feed(Thought(held, path))
            case "item_reference":
                raise UserError(f"Encountered an item_reference, which is not supported: {item}")
            case "compaction":
                raise UserError("Compaction items are not supported for chat completions. Use the Responses API there")
            case _:
                raise UserError(f"Unhandled item type or structure: {item}")

    def messages(self) -> list[ChatMessage]:
        """Return the chat messages. Called once."""
        made: list[ChatMessage] = []
        for block in self._arrangement.blocks():
            made += self._turn(block) if isinstance(block, Turn) else [{"role": block.role, "content": block.content}]
        return made

    # --- items -------------------------------------------------------------------------------------------------

    def _message(self, held: Mapping[str, Any], path: str) -> None:
        role, content = held.get("role"), held.get("content") or ""
        if role == "user":
            self._arrangement.feed(Message("user", extract_all_content(content), path))
        elif role in ("system", "developer"):
            self._arrangement.feed(Message(role, extract_text_content(content), path))
        elif role == "assistant":
            self._answer(content, path)
        else:
            raise UserError(f"Unexpected role in a message: {role}")

    def _answer(self, content: Any, path: str) -> None:
        texts: list[str] = []
        for part in [content] if isinstance(content, str) else content:
            held = {"type": "output_text", "text": part} if isinstance(part, str) else fields(part)
            if held.get("type") == "refusal":
                self._refusals[path] = joined([self._refusals.get(path), text_of(held.get("refusal"))])
            elif held.get("type") in ("output_text", "input_text", "text"):
                texts.append(text_of(held.get("text")))
            elif held.get("type") == "output_audio":
                raise UserError(f"Only audio IDs are supported for chat completions, but got: {part}")
            else:
                raise UserError(f"Unknown content type in ResponseOutputMessage: {part}")
        self._arrangement.feed(Answer(joined(texts), path))

    def _output(self, held: Mapping[str, Any], path: str) -> None:
        if held.get("call_id") is None:
            raise UserError(
                "Unpaired function outputs are supported by Responses but cannot be converted to Chat Completions "
                "tool messages. Use a Responses model to preserve this input."
            )
        content = extract_all_content(held.get("output") or [])
        if isinstance(content, str):
            self._arrangement.feed(Output(word(held["call_id"]), ToolContent(content), path))
            return
        if not self.how.preserve_tool_output_all_content:
            content = [part for part in content if part["type"] == "text"]
        text = "" if content else self._omitted()
        self._arrangement.feed(Output(word(held["call_id"]), ToolContent(text, tuple(content)), path))

    def _omitted(self) -> str:
        said = (
            "Chat Completions tool outputs cannot be empty or contain only non-text content "
            "unless preserve_tool_output_all_content=True."
        )
        if self.how.strict:
            raise UserError(said)
        logging.getLogger("antiphon").warning(
            "%s Replacing the tool output with a placeholder; strict_feature_validation raises instead.", said
        )
        return OMITTED

    # --- turns -------------------------------------------------------------------------------------------------

    def _turn(self, turn: Turn) -> list[ChatMessage]:
        outputs = [_tool_message(output) for output in turn.outputs.values()]
        if not turn.answers and not turn.calls:
            return outputs
        message: ChatMessage = {"role": "assistant"}
        text = joined(answer.text for answer in turn.answers)
        refusal = joined(self._refusals.get(answer.path) for answer in turn.answers)
        if text or turn.calls or not refusal:
            message["content"] = text or (None if turn.calls else "")
        if refusal:
            message["refusal"] = refusal
        self._think(turn, message)
        if turn.calls:
            message["tool_calls"] = [self._call(call) for call in turn.calls]
        ordered = [_tool_message(turn.outputs[call]) for call in turn.calls if call in turn.outputs]
        return [message, *ordered]

    def _call(self, call: Call) -> dict[str, Any]:
        made: dict[str, Any] = {"id": call.call_id, "type": "function"}
        made["function"] = {"name": call.name, "arguments": call.arguments}
        signature = call.data.get("thought_signature")
        if "gemini" in (self.how.model or "").lower() and (signature or call.data.get("extra_content")):
            made["extra_content"] = call.data.get("extra_content") or {"google": {"thought_signature": signature}}
        return made

    def _think(self, turn: Turn, message: ChatMessage) -> None:
        """Put the reasoning of a turn into its message, where it goes back at all."""
        model = self.how.model
        if model is None:
            return
        texts = [_summary(thought) for thought in turn.thoughts if self._replays(thought, model)]
        if any(texts):
            message["reasoning_content"] = joined(texts)
        if not self.how.preserve_thinking_blocks or not any(one in model.lower() for one in CLAUDE):
            return
        memories = [remember(one, self._scope) for one in turn.thoughts if _is_of(one, model)]
        scope = Scope(BLOCKS, self._scope.report, self._scope.names)
        message.update(REPLAYS["thinking_blocks"](memories, turn.calls, scope))
        if "thinking_blocks" not in message and (
            parts := [part for one in turn.thoughts for part in _signed(one, model)]
        ):
            text = message.get("content")
            message["content"] = [*parts, *([{"type": "text", "text": text}] if text else [])]

    def _replays(self, thought: Thought, model: str) -> bool:
        data = fields(thought.item.get("provider_data"))
        source = ReasoningContentSource(thought.item, word(data.get("model")) or None, data)
        base_url = None if self.how.base_url is None else self.how.base_url.rstrip("/")
        should = self.how.should_replay or default_should_replay_reasoning_content
        return should(ReasoningContentReplayContext(model, base_url, source))


def messages_of(items: str | Iterable[Any], how: How) -> list[ChatMessage]:
    """Return the chat messages of a history. Raises UserError for what chat cannot hold."""
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    items = list(items)
    plain = None if how.replays_some else plain_messages(items, DEFAULT, mend=False, read=_content)
    if plain is not None:
        return plain.messages
    history = History(how)
    for number, item in enumerate(items):
        history.feed(number, item)
    return history.messages()


def _content(role: str, content: Any) -> Any:
    """Return the content of a message that is a list: the text of an answer, the parts of all others."""
    if role == "assistant":
        return text_alone(role, content)
    return extract_all_content(content) if role == "user" else extract_text_content(content)


def _tool_message(output: Output) -> ChatMessage:
    content = list(output.content.media) or output.content.text
    return {"role": "tool", "tool_call_id": output.call_id, "content": content}


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
