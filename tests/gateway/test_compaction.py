"""Compaction: the real client compacts a conversation, sends what came, and goes on."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI, BadRequestError, InternalServerError, NotFoundError

from antiphon.gateway import create_app
from antiphon.gateway.compacted import INTRODUCTION, MARK, closed, opened
from antiphon.gateway.transport import AppTransport

from .asking import TOOL, Json
from .conftest import over
from .scripted_backend import SCENARIOS, Scripted, Turn, text


@asynccontextmanager
async def opened_client(config: Any) -> AsyncIterator[AsyncOpenAI]:
    http = httpx2.AsyncClient(transport=AppTransport(create_app(config)), timeout=20)
    async with AsyncOpenAI(
        api_key="unused", base_url="http://antiphon.test/v1", http_client=http, max_retries=0
    ) as client:
        yield client


TALK: list[Any] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": "How is it in Paris?"},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"city":"Paris"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "sun"},
    {"role": "assistant", "content": "It is sunny."},
    {"role": "user", "content": [{"type": "input_text", "text": "And tomorrow?"}]},
]


def kinds(output: list[Any]) -> list[str]:
    return [item.role if item.type == "message" else item.type for item in output]


def plain(item: Any) -> Json:
    """Return an item as it came: the client's types of output have no messages of users, and it warns of each."""
    held: Json = item.to_dict(mode="json", warnings=False)
    return held


async def test_a_conversation_goes_on_from_what_it_was_compacted_to(scripted: Scripted) -> None:
    """The summary is the model's; what comes next reaches the backend as a message with it, in its place."""
    async with opened_client(over(scripted)) as client:
        made = await client.responses.compact(model="text", input=TALK, instructions="Speak English.")
        following: list[Any] = [*(plain(item) for item in made.output), {"role": "user", "content": "Go on"}]
        answer = await client.responses.create(model="history", input=following)
        again = await client.responses.compact(model="text", input=following)
        stored = await client.responses.input_items.list(answer.id, order="asc")
    asked = scripted.asked[0]["messages"]
    assert (made.object, kinds(made.output)) == ("response.compaction", ["developer", "user", "user", "compaction"])
    assert made.usage.total_tokens == 18
    assert [one["role"] for one in asked][-2:] == ["user", "user"]
    assert "summary" in asked[-1]["content"]
    assert "tools" not in scripted.asked[0]
    later = scripted.asked[1]["messages"]
    assert [one["content"] for one in later if one["role"] == "user"][-2:] == [INTRODUCTION + "Hello there!", "Go on"]
    assert kinds(again.output) == ["developer", "user", "user", "user", "compaction"]
    assert "compaction" in [item.type for item in stored.data]


async def test_what_is_stored_is_compacted(scripted: Scripted) -> None:
    async with opened_client(over(scripted)) as client:
        first = await client.responses.create(model="text", input="One")
        second = await client.responses.create(model="text", input="Two", previous_response_id=first.id)
        made = await client.responses.compact(model="text", previous_response_id=second.id)
        with pytest.raises(NotFoundError):
            await client.responses.retrieve(made.id)
    said = [plain(item)["content"][0]["text"] for item in made.output[:-1]]
    assert (said, kinds(made.output)) == (["One", "Two"], ["user", "user", "compaction"])


@pytest.mark.parametrize("scenario", ["length", "content-filter", "refusal", "tool"])
async def test_what_is_no_whole_summary_is_refused(scenario: str, scripted: Scripted) -> None:
    """What it would leave out would be lost: the client keeps its items."""
    async with opened_client(over(scripted)) as client:
        with pytest.raises(InternalServerError, match="no whole summary") as refused:
            await client.responses.compact(model=scenario, input=TALK)
    assert (refused.value.status_code, refused.value.code) == (502, "compaction_failed")


@pytest.mark.parametrize(
    ("params", "param"),
    [
        ({}, "input"),
        ({"input": 7}, "input"),
        ({"input": [7]}, "input[0]"),
        ({"input": "x", "previous_response_id": "resp_none"}, "previous_response_id"),
        ({"input": "x", "instructions": 7}, "instructions"),
    ],
)
async def test_requests_that_are_wrong(params: Json, param: str, scripted: Scripted) -> None:
    async with opened_client(over(scripted)) as client:
        with pytest.raises(BadRequestError) as refused:
            await client.responses.compact(model="text", **params)
    assert (refused.value.param, scripted.asked) == (param, [])


async def test_what_it_does_not_have_is_told(scripted: Scripted) -> None:
    async with opened_client(over(scripted)) as client:
        answer = await client.responses.with_raw_response.compact(
            model="text", input="x", extra_body={"tools": [TOOL], "background": True, "store": None}
        )
    assert "tools: dropped" in answer.headers["warning"]
    assert "background: dropped" in ", ".join(answer.headers.get_list("warning"))
    assert "tools" not in scripted.asked[0]


# content -> whether this gateway made it
CONTENTS: dict[str, tuple[Any, bool]] = {
    "ours": (closed("What was.")["encrypted_content"], True),
    "empty": (MARK, True),
    "of another server": ("gAAAAABn" + "x" * 50, False),
    "no base64": (MARK + "!!!", False),
    "no text": (MARK + base64.b64encode(b"\xff\xfe").decode(), False),
    "another version": (MARK.replace("1", "2") + "eA==", False),
}


@pytest.mark.parametrize("name", CONTENTS)
async def test_what_others_made_is_left_out_and_told(name: str, scripted: Scripted) -> None:
    content, ours = CONTENTS[name]
    items: list[Any] = [{"type": "compaction", "encrypted_content": content}, {"role": "user", "content": "Hi"}]
    async with opened_client(over(scripted)) as client:
        answer = await client.responses.with_raw_response.create(model="history", input=items)
    roles = [one["role"] for one in scripted.asked[0]["messages"]]
    assert roles == (["user", "user"] if ours else ["user"])
    assert ("only the server that made it" in answer.headers.get("warning", "")) is not ours


@given(st.text())
def test_what_is_closed_is_opened(summary: str) -> None:
    item = closed(summary)
    said = opened(item)["content"][0]["text"]
    assert said == INTRODUCTION + summary
    assert opened(opened(item)) == opened(item)


async def test_a_long_summary_comes_back_whole(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "a long summary with ünïcode \u2028 " * 5_000
    monkeypatch.setitem(SCENARIOS, "long", (lambda body: Turn(text(long).deltas, whole={"content": long}),))
    async with opened_client(over(scripted)) as client:
        made = await client.responses.compact(model="long", input=TALK)
        await client.responses.create(model="text", input=[made.output[-1].to_dict()])
    assert scripted.asked[1]["messages"][0]["content"] == INTRODUCTION + long.strip()


async def test_a_session_of_openai_agents_compacts_with_it(scripted: Scripted) -> None:
    """Its own session for the API, and its own Runner: the next run goes on from the summary."""
    agents: Any = pytest.importorskip("agents", reason="openai-agents is not installed")
    memory: Any = pytest.importorskip("agents.memory")
    agents.set_tracing_disabled(True)
    async with opened_client(over(scripted, aliases={"gpt-5": "text"})) as client:
        session = memory.OpenAIResponsesCompactionSession(
            "s", agents.SQLiteSession("s"), client=client, model="gpt-5", should_trigger_compaction=lambda held: True
        )
        agent = agents.Agent(name="A", model=agents.OpenAIResponsesModel("history", client))
        first = await agents.Runner.run(agent, "One", session=session)
        kept = await session.get_items()
        second = await agents.Runner.run(agent, "Two", session=session)
    assert first.final_output == "user | One"
    assert [item.get("role") or item["type"] for item in kept][-1] == "compaction"
    assert second.final_output == "user,user,user | Two"
    assert scripted.asked[2]["messages"][1]["content"] == INTRODUCTION + "Hello there!"
