"""Settings, usage, and what a request is made of."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import pytest
from openai.types.completion_usage import PromptTokensDetails
from openai.types.shared import Reasoning

from antiphon import BadInput
from antiphon.model_settings import MCPToolChoice
from antiphon.models import (
    InputTokensDetails,
    ModelRetrySettings,
    ModelSettings,
    ModelTracing,
    OutputTokensDetails,
    RequestUsage,
    Usage,
    create_params,
    get_default_model,
)


def test_settings_are_all_unsaid() -> None:
    settings = ModelSettings()
    assert [one.name for one in fields(settings) if getattr(settings, one.name) is not None] == []
    assert len(fields(settings)) == 25
    assert set(settings.to_json_dict().values()) == {None}


def test_resolve() -> None:
    own = ModelSettings(temperature=0.5, top_p=1.0, extra_args={"a": 1, "b": 1}, retry=ModelRetrySettings(1))
    over = ModelSettings(temperature=0.0, extra_args={"b": 2}, retry=ModelRetrySettings(backoff={"jitter": False}))
    merged = own.resolve(over)
    assert (merged.temperature, merged.top_p, merged.extra_args) == (0.0, 1.0, {"a": 1, "b": 2})
    assert merged.retry is not None
    assert (merged.retry.max_retries, merged.retry.delays.jitter) == (1, False)
    assert own.resolve(None) is own
    assert own.resolve({"top_p": 0.1}).top_p == 0.1
    assert own.temperature == 0.5
    with pytest.raises(BadInput, match="there is no setting tempo"):
        own.resolve({"tempo": 1})


def test_settings_as_json() -> None:
    settings = ModelSettings(reasoning=Reasoning(effort="low"), retry={"max_retries": 2}, extra_body={"k": 1})  # type: ignore[arg-type]
    told = settings.to_json_dict()
    assert told["reasoning"]["effort"] == "low"
    assert told["retry"] == {"max_retries": 2, "backoff": None}
    assert "extra_body" not in settings.to_traceable_dict()
    with pytest.raises(BadInput, match="timeout"):
        ModelSettings(timeout=0)


def test_usage_adds_up() -> None:
    total = Usage()
    total.add(Usage(1, 10, PromptTokensDetails(cached_tokens=4), 5, None, 15))  # type: ignore[arg-type]
    total.add(Usage(3, 2, InputTokensDetails(1, 1), 1, OutputTokensDetails(1), 3))
    total.add(Usage(1))
    assert (total.requests, total.input_tokens, total.output_tokens, total.total_tokens) == (5, 12, 6, 18)
    assert total.input_tokens_details == InputTokensDetails(5, 1)
    assert total.output_tokens_details == OutputTokensDetails(1)
    assert total.request_usage_entries == [
        RequestUsage(10, 5, 15, InputTokensDetails(4), OutputTokensDetails()),
        RequestUsage(2, 1, 3, InputTokensDetails(1, 1), OutputTokensDetails(1)),
    ]
    outer = Usage()
    outer.add(total)
    assert outer.request_usage_entries == total.request_usage_entries


def test_a_response_without_usage_is_one_request() -> None:
    assert Usage.of({"usage": None}) == Usage(requests=1)


def test_tracing() -> None:
    assert [one.value for one in ModelTracing] == [0, 1, 2]
    assert ModelTracing.DISABLED.is_disabled()
    assert not ModelTracing.ENABLED_WITHOUT_DATA.include_data()


def test_the_default_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_DEFAULT_MODEL", "Qwen3")
    assert get_default_model() == "qwen3"
    monkeypatch.delenv("OPENAI_DEFAULT_MODEL")
    assert get_default_model().startswith("gpt-")


# --- create parameters -----------------------------------------------------------------------------------------------


@dataclass
class Function:
    name: str = "f"
    description: str = "does f"
    params_json_schema: dict[str, Any] = field(default_factory=lambda: {"type": "object"})
    strict_json_schema: bool = True


@dataclass
class Handoff:
    tool_name: str = "transfer_to_b"
    tool_description: str = "to b"
    input_json_schema: dict[str, Any] = field(default_factory=lambda: {"type": "object"})
    strict_json_schema: bool = False


class Hosted:
    def to_responses_tool(self) -> dict[str, Any]:
        return {"type": "web_search"}


class Schema:
    def __init__(self, plain: bool = False) -> None:
        self._plain = plain

    def is_plain_text(self) -> bool:
        return self._plain

    def name(self) -> str:
        return "Answer"

    def json_schema(self) -> dict[str, Any]:
        return {"type": "object"}

    def is_strict_json_schema(self) -> bool:
        return True


def test_nothing_said_is_nothing() -> None:
    assert create_params(input="hello") == {"input": "hello"}


def test_tools_and_handoffs() -> None:
    mapping = {"type": "function", "name": "g", "parameters": {}}
    params = create_params(
        None, [], ModelSettings(parallel_tool_calls=False), [Function(), Hosted(), mapping], None, [Handoff()]
    )
    assert params["parallel_tool_calls"] is False
    assert [tool.get("name", tool["type"]) for tool in params["tools"]] == ["f", "web_search", "g", "transfer_to_b"]
    assert params["tools"][0] == {
        "type": "function",
        "name": "f",
        "description": "does f",
        "parameters": {"type": "object"},
        "strict": True,
    }
    with pytest.raises(BadInput, match="a tool is int"):
        create_params(tools=[3])


CHOICES: list[tuple[Any, Any]] = [
    ("auto", "auto"),
    ("required", "required"),
    ("f", {"type": "function", "name": "f"}),
    ("web_search", {"type": "web_search"}),
    ({"server_label": "s", "name": "n"}, {"type": "mcp", "server_label": "s", "name": "n"}),
    (MCPToolChoice("s", "n"), {"type": "mcp", "server_label": "s", "name": "n"}),
    ({"type": "function", "name": "f"}, {"type": "function", "name": "f"}),
]


@pytest.mark.parametrize(("given", "sent"), CHOICES)
def test_tool_choice(given: Any, sent: Any) -> None:
    assert create_params(model_settings=ModelSettings(tool_choice=given))["tool_choice"] == sent


def test_the_form_of_the_answer() -> None:
    settings = ModelSettings(verbosity="low")
    assert create_params(model_settings=settings)["text"] == {"verbosity": "low"}
    assert "text" not in create_params(output_schema=Schema(plain=True))
    text = create_params(model_settings=settings, output_schema=Schema())["text"]
    assert text["format"] == {
        "type": "json_schema",
        "name": "final_output",
        "schema": {"type": "object"},
        "strict": True,
    }
    with pytest.raises(BadInput, match="output_schema"):
        create_params(output_schema=3)


def test_the_other_settings() -> None:
    settings = ModelSettings(
        max_tokens=5,
        reasoning=Reasoning(effort="low"),
        top_logprobs=2,
        response_include=["a"],
        include_usage=False,
        extra_args={"seed": 1},
        extra_body={"top_k": 2},
    )
    assert create_params(
        "be good", "hello", settings, previous_response_id="r", conversation_id="c", prompt={"id": "p"}
    ) == {
        "input": "hello",
        "instructions": "be good",
        "max_output_tokens": 5,
        "reasoning": {"effort": "low"},
        "top_logprobs": 2,
        "include": ["a", "message.output_text.logprobs"],
        "stream_options": {"include_usage": False},
        "extra_body": {"seed": 1, "top_k": 2},
        "previous_response_id": "r",
        "conversation": "c",
        "prompt": {"id": "p"},
    }
