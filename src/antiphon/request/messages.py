"""The history as chat messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .callids import CallIds
from .content import ChatPart, Scope, joined, text_part
from .items import Call, Message
from .replay import NOTHING_THOUGHT, call_fields, replayed
from .turns import Block, Turn

ChatMessage = dict[str, Any]


class Messages:
    """Makes the chat messages of a history."""

    def __init__(self, scope: Scope, *, tools: bool) -> None:
        self.call_ids = CallIds(scope)
        self._scope = scope
        self._tools = tools  # the request offers tools
        self._made: list[ChatMessage] = []

    def make(self, instructions: str, leading: Sequence[Message], blocks: Sequence[Block]) -> list[ChatMessage]:
        """Return the messages: instructions first, then those that lead, then the history. Called once."""
        self._lead(instructions, leading)
        begin = _first_replayed(self._scope, blocks)
        for number, block in enumerate(blocks):
            if isinstance(block, Turn):
                self._turn(block, replays=number >= begin)
            else:
                self._made.append({"role": self._role(block), "content": block.content})
        return self._made

    def _lead(self, instructions: str, leading: Sequence[Message]) -> None:
        for message in leading:
            if message.role == "developer":
                self._scope.report.changed(f"{message.path}.role", "developer", "system", "one message leads")
        texts = [instructions, *(message.content for message in leading if isinstance(message.content, str))]
        if any(texts):
            self._made.append({"role": "system", "content": "\n\n".join(text for text in texts if text)})

    def _role(self, message: Message) -> str:
        if message.role == "developer" and not self._scope.profile.developer_role:
            self._scope.report.changed(f"{message.path}.role", "developer", "system", "the backend has no developers")
            return "system"
        return message.role

    # --- turns -----------------------------------------------------------------------------------------------------

    def _turn(self, turn: Turn, *, replays: bool) -> None:
        text = joined(answer.text for answer in turn.answers)
        fields = self._reasoning(turn, replays=replays)
        thinking: list[ChatPart] = fields.pop("content", [])
        message: ChatMessage = {"role": "assistant", "content": text, **fields}
        if thinking:
            message["content"] = [*thinking, text_part(text)] if text else thinking
        elif not text and self._scope.profile.null_content_with_calls:
            message["content"] = None
        self._made.append(message)
        if turn.calls:
            self._calls(turn, message)

    def _reasoning(self, turn: Turn, *, replays: bool) -> dict[str, Any]:
        report, profile = self._scope.report, self._scope.profile
        if not replays and profile.reasoning_replay != "none":
            for thought in turn.thoughts:
                report.ignored(thought.path, "reasoning", "the backend takes back that of the current tool calls alone")
            return {}
        fields = replayed(turn.thoughts, turn.calls, self._scope)
        if not fields and self._must_think():
            report.add("made", turn.path, "an answer without reasoning", "empty reasoning", "the backend wants some")
            return {"reasoning_content": NOTHING_THOUGHT}
        return fields

    def _must_think(self) -> bool:
        profile = self._scope.profile
        return self._tools and profile.reasoning_replay == "reasoning_content" and profile.reasoning_replay_always

    def _calls(self, turn: Turn, message: ChatMessage) -> None:
        """Add the calls to the assistant message, their outputs after it, and then what no tool message holds."""
        calls: list[dict[str, Any]] = []
        outputs: list[ChatMessage] = []
        shown: list[ChatPart] = []
        taken: set[str] = set()
        for call in turn.calls:
            chat_id = self.call_ids.give(call.call_id, call.path, taken)
            calls.append(self._call(call, chat_id, first=not calls))
            content, path = turn.outputs[call].content, turn.outputs[call].path
            text = content.text
            if content.media:
                text = text or "[see the next user message]"
                shown += [text_part(f"[output of {call.name}, call {chat_id}]"), *content.media]
                self._scope.report.changed(path, "an output that is not text", "a user message", _TEXT_ALONE)
            outputs.append({"role": "tool", "tool_call_id": chat_id, "content": text})
        message["tool_calls"] = calls
        self._made += outputs
        if shown:
            self._made.append({"role": "user", "content": shown})

    def _call(self, call: Call, chat_id: str, *, first: bool) -> dict[str, Any]:
        function = {"name": call.name, "arguments": call.arguments}
        extra = call_fields(call, self._scope, first=first)
        return {"id": chat_id, "type": "function", "function": function, **extra}


def _first_replayed(scope: Scope, blocks: Sequence[Block]) -> int:
    """Return from which block on reasoning goes back."""
    if scope.profile.reasoning_replay_always:
        return 0
    users = [number for number, block in enumerate(blocks) if isinstance(block, Message) and block.role == "user"]
    begin = users[-1] if users else 0
    at_work = any(isinstance(block, Turn) and block.calls for block in blocks[begin:])
    return begin if at_work else len(blocks)


_TEXT_ALONE = "chat takes text alone from tools"
