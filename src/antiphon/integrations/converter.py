"""`Converter`: the conversion between Responses and chat, under the names that users of openai-agents know.

It is thin: histories are arranged by `antiphon.request`, answers read by `antiphon.to_response`. Models do not use it:
theirs is `antiphon.request.to_chat_request`, which reports what it cannot carry instead of raising.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from openai import omit

from antiphon import to_response
from antiphon.errors import BadInput
from antiphon.exceptions import AgentsException, UserError
from antiphon.models.params import CHOICE_MODES, tool_param
from antiphon.stream.chunk import fields, many

from .converter_content import extract_all_content, extract_text_content
from .converter_history import History, How

Json = dict[str, Any]
ROLES = ("user", "system", "developer", "assistant")
EASY = frozenset({"content", "role", "type", "phase"})


def _dict(item: Any) -> Json:
    return item if isinstance(item, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _of_type(item: Any, kind: str) -> Json | None:
    held = _dict(item)
    return held if held.get("type") == kind else None


def _recogniser(kind: str) -> classmethod[Any, [Any], Json | None]:
    """Return the class method that recognises items of a type."""
    return classmethod(lambda cls, item: _of_type(item, kind))


class Converter:
    """Class methods alone; nothing is kept."""

    @classmethod
    def items_to_messages(
        cls, items: str | Iterable[Any], model: str | None = None, *positional: Any, **options: Any
    ) -> list[Any]:
        """Return the chat messages of a history: one assistant message for a turn, outputs after its calls.

        The options are those of `How`. Raises UserError for items that chat has not, and, where strict, for a tool
        output without text, which is else replaced by a note; TypeError for an option that is none.
        """
        return History(How(model, *positional, **options)).messages(items)

    @classmethod
    def message_to_output_items(
        cls, message: Any, provider_data: Json | None = None, strict_feature_validation: bool = False
    ) -> list[Any]:
        """Return the output items of an assistant message, openai objects, as the one assembler makes them.

        `provider_data` goes into each. Raises AgentsException for audio, UserError for custom calls where strict.
        """
        held = fields(message)
        if held.get("audio"):
            raise AgentsException("Audio is not currently supported")
        customs = [call for call in many(held.get("tool_calls")) if fields(call).get("type") == "custom"]
        if customs and strict_feature_validation:
            raise UserError("Custom tool calls are not supported by the Chat Completions converter")
        finish = "tool_calls" if held.get("tool_calls") else "stop"
        choice = {"index": 0, "message": held, "finish_reason": finish}
        response = to_response({"object": "chat.completion", "choices": [choice]}, reasoning="summary")
        for item in response.output:
            data = {**(provider_data or {}), **_with_signature(fields(getattr(item, "provider_data", None)))}
            if data:
                item.provider_data = data
        return list(response.output)

    @classmethod
    def convert_tool_choice(cls, tool_choice: Any) -> Any:
        """Return `tool_choice` as chat has it; `omit` where nothing is said. Raises UserError for a server's tool."""
        if tool_choice is None:
            return omit
        if not isinstance(tool_choice, str):
            raise UserError(f"{type(tool_choice).__name__} is not supported for Chat Completions models")
        return tool_choice if tool_choice in CHOICE_MODES else {"type": "function", "function": {"name": tool_choice}}

    @classmethod
    def convert_response_format(cls, final_output_schema: Any) -> Any:
        """Return `response_format` for a schema of the final output; `omit` where that is plain text."""
        if final_output_schema is None or final_output_schema.is_plain_text():
            return omit
        schema = {
            "name": "final_output",
            "strict": final_output_schema.is_strict_json_schema(),
            "schema": final_output_schema.json_schema(),
        }
        return {"type": "json_schema", "json_schema": schema}

    @classmethod
    def tool_to_openai(cls, tool: Any) -> Json:
        """Return a function tool as chat has it. Raises UserError for any other."""
        try:
            held = tool_param(tool)
        except BadInput:
            held = {}
        if held.get("type") != "function":
            raise UserError(
                "Hosted tools are not supported with the ChatCompletions API. "
                f"Got tool type: {type(tool)}, tool: {tool}"
            )
        return _function(held, held.get("description") or "")

    @classmethod
    def convert_handoff_tool(cls, handoff: Any) -> Json:
        """Return a handoff as a function of chat."""
        held = tool_param(handoff)
        return _function(held, held.get("description"))

    @classmethod
    def extract_text_content(cls, content: str | Iterable[Any]) -> str | list[Json]:
        """Return the text of a content: a string as it is, else its text parts."""
        return extract_text_content(content)

    @classmethod
    def extract_all_content(cls, content: str | Iterable[Any]) -> str | list[Json]:
        """Return a content in the parts of chat. Raises UserError for a part that chat has not."""
        return extract_all_content(content)

    # --- recognisers: each returns the item where it is one, else None --------------------------------------------

    @classmethod
    def maybe_easy_input_message(cls, item: Any) -> Json | None:
        """Return a message of `role` and `content` alone."""
        held = _dict(item)
        bare = {"content", "role"} <= held.keys() <= EASY and held.get("type", "message") == "message"
        known = held.get("phase") in (None, "commentary", "final_answer") and held.get("role") in ROLES
        return held if bare and known else None

    @classmethod
    def maybe_input_message(cls, item: Any) -> Json | None:
        """Return a message of the user, the system or the developer."""
        held = _of_type(item, "message")
        return held if held and held.get("role") in ROLES[:3] else None

    @classmethod
    def maybe_response_output_message(cls, item: Any) -> Json | None:
        """Return a message of the assistant that has an id."""
        held = _of_type(item, "message")
        return held if held and held.get("role") == "assistant" and {"id", "content"} <= held.keys() else None

    maybe_file_search_call = _recogniser("file_search_call")
    maybe_function_tool_call = _recogniser("function_call")
    maybe_function_tool_call_output = _recogniser("function_call_output")
    maybe_item_reference = _recogniser("item_reference")
    maybe_reasoning_message = _recogniser("reasoning")


def _function(held: Json, description: Any) -> Json:
    function = {key: held.get(key) for key in ("name", "parameters", "strict")}
    return {"type": "function", "function": {**function, "description": description}}


def _with_signature(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `provider_data` of a call with Gemini's signature where users of openai-agents look for it."""
    signature = fields(fields(data.get("extra_content")).get("google")).get("thought_signature")
    return {**data, "thought_signature": signature} if signature else data
