"""openai-python and Codex over the gateway and llama.cpp's own server, with a model that speaks a script."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import openai
import pytest

pytest.importorskip("starlette", reason="the extra `gateway` is not installed")

from antiphon.gateway import create_app
from antiphon_conformance import check
from tests.gateway.conftest import listening
from tests.providers.backends.llamacpp import llamacpp, needs_llamacpp

from .codex import codex, needs_codex, needs_node
from .scripted_model import model_that_calls

pytestmark = [pytest.mark.live, needs_llamacpp]

WEATHER: dict[str, Any] = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 12}, "unit": {"type": "string", "enum": ["c", "f"]}},
        "required": ["city", "unit"],
        "additionalProperties": False,
    },
}
ADD: dict[str, Any] = {
    "type": "function",
    "name": "add",
    "description": "Add two numbers",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {name: {"type": "integer", "minimum": 0, "maximum": 99} for name in "ab"},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
}
PLACE: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 8}, "big": {"type": "boolean"}},
    "required": ["city", "big"],
    "additionalProperties": False,
}
# What the model says may come to its end or to the limit: status -> the last event
ENDED = {"completed": "response.completed", "incomplete": "response.incomplete"}
# The model has scripts for tools of its own only, so with Codex's it is to speak the script of a text.
NO_TOOLS = """{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}<|im_start|>assistant
<|s:text|>"""
# It shows the model no more of the tools than their names, so that Codex's fit in its short context. After the output of
# a tool the model says a text: it would call without end where that did not come back to it.
TOOLS = r"""{%- if tools %}{{- '<|im_start|>system\n# Tools\n<tools>' }}{%- for tool in tools %}{{- '\n' ~ tool.function.name }}{%- endfor %}{{- '\n</tools>\nFor each call:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call><|im_end|>\n' }}{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}{{- '<|im_start|>user\n<tool_response>\n' ~ message.content ~ '\n</tool_response><|im_end|>\n' }}
{%- elif message.role != 'system' %}{{- '<|im_start|>' ~ message.role ~ '\n' ~ (message.content or '') }}{%- for one in message.tool_calls or [] %}{{- '\n<tool_call>\n{"name": "' ~ one.function.name ~ '", "arguments": ' ~ (one.function.arguments | tojson) ~ '}\n</tool_call>' }}{%- endfor %}{{- '<|im_end|>\n' }}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' ~ ('<|s:tool|>' if tools and messages[-1].role != 'tool' else '<|s:text|>') }}{%- endif %}"""
PATCH = "*** Begin Patch\n*** Add File: made.txt\n+made by a patch\n*** End Patch"
WEATHER_SERVER = Path(__file__).with_name("weather_server.py")
# `required`: Codex waits until it has started, and would begin without its tools otherwise
STARTED = f'{{command="{sys.executable}", args=["{WEATHER_SERVER}"], required=true, startup_timeout_sec=50}}'
WITH_WEATHER = ("--config", f"mcp_servers.weather={STARTED}")
Task: TypeAlias = tuple[str, str, dict[str, str], tuple[str, ...], str, str | None]
# what the model calls: the model that Codex asks for (apply_patch, a freeform tool, is offered to those that it knows),
# the name and the arguments of the call as the backend makes it, options of Codex, what Codex did, what is in the file
TASKS: dict[str, Task] = {
    "shell": ("tiny", "exec_command", {"cmd": "echo made by a shell > made.txt"}, (), "command_execution", "a shell"),
    "patch": ("gpt-5.5", "apply_patch", {"input": PATCH}, (), "file_change", "a patch"),
    "mcp": ("tiny", "mcp__weather__get_weather", {"city": "Oslo"}, WITH_WEATHER, "mcp_tool_call", None),
}


@asynccontextmanager
async def served(backend: str) -> AsyncIterator[str]:
    """Give the URL of a gateway over the server at `backend`."""
    config = {
        "backends": {"llama": {"url": f"{backend}/v1", "profile": "llamacpp"}},
        "aliases": {"gpt-5.5": "llama/tiny"},
    }
    async with listening(create_app(config)) as url:
        yield url


@pytest.fixture(scope="module")
def backend() -> Any:
    with llamacpp() as url:
        yield url


def shapes(output: list[Any]) -> list[str]:
    return [item.type for item in output]


async def test_openai_python_text_streamed_and_whole(backend: str) -> None:
    async with served(backend) as url, openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k") as client:
        events = [
            event
            async for event in await client.responses.create(
                model="tiny", temperature=0, input="Hello", max_output_tokens=60, stream=True
            )
        ]
        whole = await client.responses.create(model="tiny", temperature=0, input="Hello", max_output_tokens=60)
    assert check(events).findings == ()
    assert events[-1].type == ENDED[events[-1].response.status]
    assert shapes(events[-1].response.output) == shapes(whole.output) == ["message"]
    assert whole.output_text
    assert whole.usage is not None
    assert whole.usage.total_tokens == whole.usage.input_tokens + whole.usage.output_tokens > 0


async def test_openai_python_tool_loop(backend: str) -> None:
    async with served(backend) as url, openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k") as client:
        asked: list[Any] = [{"role": "user", "content": "The weather, please"}]
        stream = await client.responses.create(
            model="tiny", temperature=0, input=asked, tools=[WEATHER, ADD], stream=True
        )
        seen = [event async for event in stream]
        first = seen[-1].response
        calls = [item for item in first.output if item.type == "function_call"]
        answers = [{"type": "function_call_output", "call_id": one.call_id, "output": "sunny"} for one in calls]
        given = [*asked, *(item.to_dict() for item in first.output), *answers]
        second = await client.responses.create(
            model="tiny", temperature=0, input=given, tools=[WEATHER, ADD], max_output_tokens=60
        )
    assert check(seen).ok
    assert calls
    assert {one.name for one in calls} <= {"get_weather", "add"}
    assert all(isinstance(json.loads(one.arguments), dict) for one in calls)
    assert second.status in ENDED
    assert shapes(second.output) == ["message"]


async def test_openai_python_json_schema(backend: str) -> None:
    text: Any = {"format": {"type": "json_schema", "name": "place", "strict": True, "schema": PLACE}}
    async with served(backend) as url, openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k") as client:
        response = await client.responses.create(model="tiny", temperature=0, input="A place", text=text)
    assert set(json.loads(response.output_text)) == {"city", "big"}


@needs_node
@needs_codex
async def test_codex_text_and_schema(tmp_path: Path) -> None:
    template = tmp_path / "no-tools.jinja"
    template.write_text(NO_TOOLS)
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(PLACE))
    for name in ("said", "formed"):
        (tmp_path / name).mkdir()
    with llamacpp(template, context=16384) as backend:
        async with served(backend) as url:
            said = await codex(url, "tiny", "Hello", tmp_path / "said", instructions="Be brief.")
            options = ("--output-schema", str(schema))
            formed = await codex(url, "tiny", "A place", tmp_path / "formed", *options, instructions="Be brief.")
    assert (said.status, said.kinds()) == (0, ["agent_message"]), said.errors
    assert (formed.status, formed.kinds()) == (0, ["agent_message"]), formed.errors
    assert set(json.loads(formed.said()[0])) == {"city", "big"}


@needs_node
@needs_codex
@pytest.mark.parametrize("task", TASKS)
async def test_codex_does_a_task(task: str, tmp_path: Path) -> None:
    """The model calls a function, a freeform tool, a tool of a namespace: Codex runs it, and the output goes back."""
    if task == "mcp" and importlib.util.find_spec("mcp") is None:
        pytest.skip("the package `mcp` is not installed")
    model, name, arguments, options, kind, made_by = TASKS[task]
    template = tmp_path / "tools.jinja"
    template.write_text(TOOLS)
    with llamacpp(template, context=16384, model=model_that_calls(tmp_path, name, arguments)) as backend:
        async with served(backend) as url:
            done = await codex(url, model, "Do it.", tmp_path, *options, instructions="Be brief.")
    *acts, said = (item for item in done.items if item["type"] != "error")
    assert (done.status, {item["type"] for item in acts}, said["type"]) == (0, {kind}, "agent_message"), done.errors
    assert all(item["status"] == "completed" for item in acts)
    assert done.files == ({} if made_by is None else {"made.txt": f"made by {made_by}\n"})
    if made_by is None:
        assert [item["result"]["structured_content"] for item in acts] == [{"result": "It is sunny in Oslo."}] * len(
            acts
        )
