"""The page at `/`: what it shows to whom, and that it is not there unless it is wanted."""

from __future__ import annotations

import base64
import re

import httpx2
import pytest

from antiphon.gateway import create_app
from antiphon.gateway.process import served_config

from .asking import asked, asking
from .conftest import listening, over
from .scripted_backend import Scripted

ANNE, BOB = "sk-anne-123456789", "sk-bob-1234567890"


def bars_in(page: str) -> list[str]:
    """Return the kinds of the bars, in order."""
    return re.findall(r'<rect class="(\w+)"', page)


@pytest.mark.parametrize("content", [True, False])
async def test_recent_streams_are_shown(content: bool, scripted: Scripted) -> None:
    async with asking(over(scripted, page={"enabled": True, "content": content})) as client:
        empty = (await client.get("/")).text
        await asked(client, "reasoning", stream=True, store=False)
        await asked(client, "error-mid-stream", stream=True)
        page = await client.get("/")
        part = (await client.get("/streams")).text
    assert "None yet" in empty
    assert page.headers["content-type"].startswith("text/html")
    assert "script-src 'nonce-" in page.headers["content-security-policy"]
    assert "http://" not in page.text.replace("http://www.w3.org/2000/svg", "")
    assert page.text.count("<section>") == part.count("<section>") == 2
    assert bars_in(part) == ["message", "output_text", "reasoning", "summary_text", "message", "output_text"]
    assert ("Forty-two." in part, "the engine died" in part) == (content, content)


async def test_a_stream_is_shown_while_it_runs(scripted: Scripted) -> None:
    async with (
        listening(create_app(over(scripted, page={"enabled": True}))) as url,
        httpx2.AsyncClient(base_url=url) as client,
        client.stream("POST", "/v1/responses", json={"model": "hang", "input": "x", "stream": True}) as answer,
    ):
        body = answer.aiter_raw()
        await anext(body)
        part = (await client.get("/streams")).text
    assert bars_in(part) == ["message", "output_text"]


async def test_each_key_sees_its_own(scripted: Scripted) -> None:
    def basic(key: str) -> dict[str, str]:
        return {"Authorization": "Basic " + base64.b64encode(f"me:{key}".encode()).decode()}

    async with asking(over(scripted, page={"enabled": True, "content": True}, api_keys=[ANNE, BOB])) as client:
        await client.post(
            "/v1/responses", json={"model": "text", "input": "x", "stream": True}, headers={"api-key": ANNE}
        )
        without = await client.get("/")
        pages = [await client.get("/", headers=basic(key)) for key in (ANNE, BOB, "wrong-wrong")]
        by_basic = await client.post("/v1/responses", json={"model": "text", "input": "x"}, headers=basic(ANNE))
    assert (without.status_code, without.headers["www-authenticate"][:5]) == (401, "Basic")
    assert [one.status_code for one in pages] == [200, 200, 401]
    assert ["Hello there!" in one.text for one in pages] == [True, False, False]
    assert by_basic.status_code == 401


async def test_it_is_there_where_it_is_wanted_alone(scripted: Scripted) -> None:
    async with asking(over(scripted)) as client:
        assert (await client.get("/")).status_code == 404
    store = {"store": {"url": "memory"}}
    assert served_config(None, store, "127.0.0.1", insecure=False).page.enabled
    assert not served_config(None, {**store, "page": {"enabled": False}}, "127.0.0.1", insecure=False).page.enabled
    assert not served_config(None, store, "0.0.0.0", insecure=True).page.enabled
