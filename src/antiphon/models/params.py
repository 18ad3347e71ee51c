"""`create_params`: what a runner says to a model, as the create parameters of the Responses API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from inspect import isfunction
from typing import Any, Protocol, runtime_checkable

from antiphon.errors import BadInput
from antiphon.stream.chunk import fields, plain

from .settings import ModelSettings

Json = dict[str, Any]

# setting -> the parameter that it is; what is read otherwise is in `_settings`, `_text` and `_included`
PARAMETERS: dict[str, str] = {
    "max_tokens": "max_output_tokens",
    **{name: name for name in ("temperature", "top_p", "frequency_penalty", "presence_penalty", "top_logprobs")},
    **{name: name for name in ("truncation", "reasoning", "metadata", "store", "context_management")},
    **{name: name for name in ("prompt_cache_retention", "prompt_cache_options")},
}
LOGPROBS = "message.output_text.logprobs"
CHOICE_MODES = frozenset({"auto", "required", "none"})
# names that mean a tool of the API's own, not a function
HOSTED_CHOICES = frozenset(
    {"file_search", "web_search", "web_search_preview", "code_interpreter", "image_generation", "mcp", "computer"}
)

# What is a function to the model: what its name, its description, its schema and whether that is strict are called by
# function tools, and by handoffs.
FUNCTIONS = (
    ("name", "description", "params_json_schema", "strict_json_schema"),
    ("tool_name", "tool_description", "input_json_schema", "strict_json_schema"),
)


@runtime_checkable
class DescribesItself(Protocol):
    """A tool that knows how the Responses API has it."""

    def to_responses_tool(self) -> Mapping[str, Any]: ...


@runtime_checkable
class Includes(Protocol):
    """A tool that asks for more in the answer, by the API's words for `include`."""

    @property
    def response_include(self) -> Sequence[str]: ...


@runtime_checkable
class SchemaLike(Protocol):
    """What the answer has to be."""

    def is_plain_text(self) -> bool: ...
    def name(self) -> str: ...
    def json_schema(self) -> Mapping[str, Any]: ...
    def is_strict_json_schema(self) -> bool: ...


def create_params(
    system_instructions: str | None = None,
    input: str | Sequence[Any] = "",
    model_settings: ModelSettings | None = None,
    tools: Iterable[Any] = (),
    output_schema: Any = None,
    handoffs: Iterable[Any] = (),
    *,
    previous_response_id: str | None = None,
    conversation_id: str | None = None,
    prompt: Any = None,
) -> Json:
    """Return the create parameters; what was not said is not in them, nor is what belongs to the transport.

    Raises BadInput for a tool or a schema that is none.
    """
    settings = model_settings or ModelSettings()
    given = [*tools, *handoffs]
    offered = _grouped([tool_param(one) for one in given])
    said: Json = {
        "input": input if isinstance(input, str) else [one if type(one) is dict else plain(one) for one in input],
        "instructions": system_instructions,
        **_settings(settings),
        "text": _text(output_schema, settings),
        "include": _included(settings, given),
        "tools": offered or None,
        "tool_choice": choice_param(settings.tool_choice),
        "parallel_tool_calls": settings.parallel_tool_calls if offered else None,
        "previous_response_id": previous_response_id,
        "conversation": conversation_id,
        "prompt": plain(prompt),
    }
    return {name: value for name, value in said.items() if value is not None}


def tool_param(tool: Any) -> Json:
    """Return a tool or a handoff as the API has it: a mapping as it is, what describes itself as it says."""
    if isinstance(tool, Mapping):
        return dict(tool)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(tool, DescribesItself):
        return dict(tool.to_responses_tool())
    for names in FUNCTIONS:
        if all(hasattr(tool, one) for one in names):
            name, description, schema, strict = (getattr(tool, one) for one in names)
            parameters = {"description": description, "parameters": dict(schema), "strict": strict}
            return {"type": "function", "name": name, **parameters}
    what = f"the function {tool.__name__}" if isfunction(tool) else type(tool).__name__
    raise BadInput(
        f"a tool is {what}: it is a mapping, a function tool (`@function_tool` makes one of a function), "
        "a handoff, or has `to_responses_tool()`, which returns the mapping"
    )


def choice_param(choice: Any) -> Any:
    """Return `tool_choice` as the API has it: the name of a tool becomes an object."""
    if choice is None or (isinstance(choice, str) and choice in CHOICE_MODES):
        return choice
    if isinstance(choice, str):
        return {"type": choice} if choice in HOSTED_CHOICES else {"type": "function", "name": choice}
    held = plain(choice)
    return {"type": "mcp", **held} if "server_label" in held else held


def _settings(settings: ModelSettings) -> Json:
    said = {name: plain(getattr(settings, setting)) for setting, name in PARAMETERS.items()}
    said["reasoning"] = _told(said["reasoning"])
    if settings.include_usage is False:
        said["stream_options"] = {"include_usage": False}
    extra = {**(settings.extra_args or {}), **fields(settings.extra_body)}
    return {**said, "extra_body": plain(extra) or None}


def _told(held: Any) -> Any:
    """Return an object without its nulls; None where nothing is left."""
    return {key: value for key, value in held.items() if value is not None} or None if held else None


def _text(schema: Any, settings: ModelSettings) -> Json | None:
    text: Json = {} if settings.verbosity is None else {"verbosity": settings.verbosity}
    if schema is None:
        return text or None
    if not isinstance(schema, SchemaLike):
        raise BadInput(f"output_schema is {type(schema).__name__}: it has is_plain_text, name, json_schema, …")
    if not schema.is_plain_text():
        text["format"] = {
            "type": "json_schema",
            "name": "final_output",
            "schema": dict(schema.json_schema()),
            "strict": schema.is_strict_json_schema(),
        }
    return text or None


def _grouped(tools: list[Json]) -> list[Json]:
    """Return tools with those of one namespace in one entry, where the first of them stood."""
    made: list[Json] = []
    spaces: dict[str, Json] = {}
    for tool in tools:
        known = spaces.get(str(tool.get("name"))) if tool.get("type") == "namespace" else None
        if known is not None:
            known["tools"] = [*known["tools"], *tool["tools"]]
            continue
        made.append(tool)
        if tool.get("type") == "namespace":
            spaces[str(tool.get("name"))] = tool
    return made


def _included(settings: ModelSettings, tools: Sequence[Any]) -> list[str] | None:
    asked = list(settings.response_include or ())
    for tool in tools:
        told = tool.response_include if isinstance(tool, Includes) else ()
        asked.extend(one for one in told if one not in asked)
    if settings.top_logprobs is not None and LOGPROBS not in asked:
        asked.append(LOGPROBS)
    return asked or None
