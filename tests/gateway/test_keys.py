"""Who may call, what belongs to whom, and what is told to nobody."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.routing import Route

from antiphon.errors import BadInput
from antiphon.gateway import create_app
from antiphon.gateway.process import check_binding, is_loopback, served_config

from .asking import Json, asked, asking, streamed
from .conftest import over
from .scripted_backend import Scripted

ANNE, BOB = "sk-anne-123456789", "sk-bob-1234567890"
KEYS = {"api_keys": [ANNE, BOB]}


# what everybody may see: nothing of it is a caller's
OPEN = ("/healthz", "/readyz", "/openapi.json")
BY_BROWSER = ("/", "/streams")


def every_route(config: Any, **places: str) -> list[tuple[str, str]]:
    """Return the methods and paths that a gateway serves, with these names in their places; "r" in all others."""
    found: list[tuple[str, str]] = []
    for route in create_app(config).routes:
        assert isinstance(route, Route)
        path = re.sub(r"\{(\w+)[^}]*\}", lambda one: places.get(one[1], "r"), route.path)
        found += [(method, path) for method in sorted(route.methods or ()) if method != "HEAD"]
    return found


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.parametrize(
    "headers",
    [{}, bearer("sk-wrong-12345678"), bearer(""), {"Authorization": ANNE}, bearer(ANNE + "x"), bearer(ANNE[:-1])],
)
async def test_wrong_keys_are_refused_on_every_route(headers: dict[str, str], scripted: Scripted) -> None:
    config = over(scripted, **KEYS, page={"enabled": True})
    paths = [one for one in every_route(config) if one[1] not in OPEN and one[1] not in BY_BROWSER]
    async with asking(config) as client:
        answers = [
            await client.request(method, path, headers=headers, json={"model": "text", "input": "x"})
            for method, path in paths
        ]
        open_ones = [await client.get(path, headers=headers) for path in OPEN]
        pages = [await client.get(path, headers=headers) for path in BY_BROWSER]
    assert len(paths) >= 39
    assert [one.status_code for one in answers] == [401] * len(paths)
    assert all(one.json()["error"]["type"] == "authentication_error" for one in answers)
    assert all(one.headers["www-authenticate"] == "Bearer" for one in answers)
    assert [one.status_code for one in open_ones] == [200] * 3
    assert [(one.status_code, one.headers["www-authenticate"][:5]) for one in pages] == [(401, "Basic")] * 2
    assert scripted.server.requests == []


@pytest.mark.parametrize(
    "headers", [bearer(ANNE), {"Authorization": f"bearer {ANNE}"}, {"api-key": ANNE}, {"x-api-key": ANNE}]
)
async def test_right_keys_go_in_and_stay_here(headers: dict[str, str], scripted: Scripted) -> None:
    async with asking(over(scripted, **KEYS)) as client:
        answer = await client.post("/v1/responses", headers=headers, json={"model": "text", "input": "x"})
    assert answer.status_code == 200
    assert ANNE not in str(scripted.server.requests[0])


async def test_one_key_cannot_reach_what_another_stored(scripted: Scripted) -> None:
    async with asking(over(scripted, **KEYS)) as client:
        client.headers.update(bearer(ANNE))
        mine = (await streamed(client, "text"))[-1]["response"]["id"]
        talk = (await client.post("/v1/conversations", json={"items": [{"role": "user", "content": "secret"}]})).json()[
            "id"
        ]
        item = (await client.get(f"/v1/responses/{mine}")).json()["output"][0]["id"]
        client.headers.update(bearer(BOB))
        tries: list[httpx2.Response] = [
            await client.get(f"/v1/responses/{mine}"),
            await client.get(f"/v1/responses/{mine}?stream=true"),
            await client.get(f"/v1/responses/{mine}/input_items"),
            await client.post(f"/v1/responses/{mine}/cancel"),
            await client.delete(f"/v1/responses/{mine}"),
            await client.get(f"/v1/conversations/{talk}"),
            await client.get(f"/v1/conversations/{talk}/items"),
            await client.post(f"/v1/conversations/{talk}/items", json={"items": [{"role": "user", "content": "x"}]}),
            await client.post(f"/v1/conversations/{talk}", json={"metadata": {}}),
            await client.delete(f"/v1/conversations/{talk}"),
            await asked(client, "text", conversation=talk),
            await asked(client, "text", previous_response_id=mine),
            await asked(client, "text", input=[{"type": "item_reference", "id": item}]),
        ]
        client.headers.update(bearer(ANNE))
        kept = await client.get(f"/v1/responses/{mine}")
    assert [one.status_code for one in tries] == [404] * 11 + [400, 400]
    assert all("secret" not in one.text for one in tries)
    assert kept.status_code == 200


async def test_whatever_names_what_is_anothers_finds_nothing(scripted: Scripted) -> None:
    """On each route that has such a name in its path, and by each parameter that refers to something."""
    config = over(scripted, **KEYS)
    async with asking(config) as client:
        client.headers.update(bearer(ANNE))
        secret: Json = {"id": "msg_anne", "type": "message", "role": "user", "content": "secret"}
        talk = (await client.post("/v1/conversations", json={"items": [secret]})).json()["id"]
        mine = (await streamed(client, "text", conversation=talk))[-1]["response"]["id"]
        before = [await client.get(path) for path in (f"/v1/responses/{mine}", f"/v1/conversations/{talk}/items")]
        client.headers.update(bearer(BOB))
        places = {"response_id": mine, "conversation_id": talk, "item_id": "msg_anne"}
        named = [one for one in every_route(config, **places) if mine in one[1] or talk in one[1]]
        found = [
            await client.request(method, path, json={"items": [], "metadata": {}} if method == "POST" else None)
            for method, path in named
        ]
        again = [await client.get(f"/v1/responses/{mine}?stream=true&starting_after={at}") for at in (-1, 0, 5)]
        references: list[Json] = [
            {"previous_response_id": mine},
            {"conversation": talk},
            {"conversation": {"id": talk}},
            {"input": [{"type": "item_reference", "id": "msg_anne"}]},
            {"input": [{"id": "msg_anne"}]},
            {"background": True, "previous_response_id": mine},
        ]
        lacking = {"input_tokens": {"background"}, "compact": {"background", "conversation"}}  # their parameters
        made = [
            await client.post(path, json={"model": "text", **({} if "input" in one else {"input": "x"}), **one})
            for path in ("/v1/responses", "/v1/responses/input_tokens", "/v1/responses/compact")
            for one in references
            if not lacking.get(path.rpartition("/")[2], set()) & set(one)
        ]
        own = (await client.post("/v1/conversations", json={})).json()["id"]
        moved = await client.post(f"/v1/conversations/{own}/items", json={"items": [{"id": "msg_anne"}]})
        client.headers.update(bearer(ANNE))
        after = [await client.get(path) for path in (f"/v1/responses/{mine}", f"/v1/conversations/{talk}/items")]
    assert len(named) >= 22
    assert [(one, answer.status_code) for one, answer in zip(named, found, strict=True)] == [
        (one, 404) for one in named
    ]
    assert [one.status_code for one in again] == [404] * 3
    assert {one.status_code for one in (*made, moved)} <= {400, 404}
    assert all("secret" not in one.text for one in (*found, *again, *made, moved))
    assert [one.json() for one in after] == [one.json() for one in before]
    assert len(scripted.asked) == 1


async def test_a_named_key_can_be_changed(scripted: Scripted, tmp_path: Path) -> None:
    store = {"url": f"sqlite:///{tmp_path / 'a.db'}"}
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text(f"# keys\nanne: {ANNE}\n\n{BOB}\n")
    second.write_text("anne: sk-anne-is-new-now\n")
    async with asking(over(scripted, api_key_file=first, store=store)) as client:
        mine = (await client.post("/v1/responses", headers=bearer(ANNE), json={"model": "text", "input": "x"})).json()[
            "id"
        ]
        other = await client.get(f"/v1/responses/{mine}", headers=bearer(BOB))
    async with asking(over(scripted, api_key_file=second, store=store)) as client:
        again = await client.get(f"/v1/responses/{mine}", headers=bearer("sk-anne-is-new-now"))
        old = await client.get(f"/v1/responses/{mine}", headers=bearer(ANNE))
    assert (other.status_code, again.status_code, old.status_code) == (404, 200, 401)


async def test_the_callers_key_goes_on_where_that_is_configured(scripted: Scripted) -> None:
    config = {"backends": {"scripted": {"url": scripted.url, "api_key": "sk-ours-123456789", "pass_caller_key": True}}}
    async with asking(config) as client:
        mine = (await client.post("/v1/responses", headers=bearer(ANNE), json={"model": "text", "input": "x"})).json()[
            "id"
        ]
        await asked(client, "text")
        other = await client.get(f"/v1/responses/{mine}", headers=bearer(BOB))
    assert [one.headers["authorization"] for one in scripted.server.requests] == [
        f"Bearer {ANNE}",
        "Bearer sk-ours-123456789",
    ]
    assert other.status_code == 404


async def test_no_key_and_no_content_in_logs(scripted: Scripted, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("aiosqlite", "httpcore2", "httpx2", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)  # of others; a server runs them so
    async with asking(over(scripted, **KEYS, retry={"attempts": 0})) as client:
        client.headers.update(bearer(ANNE))
        for scenario in ("text", "error-400", "error-500", "error-mid-stream", "disconnect", "refusal"):
            for stream in (True, False):
                params: Json = {
                    "input": "my heart is secret",
                    "tools": [{"type": "web_search"}],
                    "metadata": {"a": "private"},
                }
                await asked(client, scenario, stream=stream, **params)
        await client.post("/v1/responses", content=b'{"private"', headers={"content-type": "application/json"})
        await client.get("/v1/models", headers=bearer("sk-wrong-12345678"))
    told = caplog.text
    assert not [word for word in (ANNE, "sk-wrong", "secret", "private", "Traceback") if word in told]


@pytest.mark.parametrize(
    ("host", "inside"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("127.8.8.8", True),
        ("unix:/tmp/x", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("192.0.2.1", False),
        ("no.such.host.invalid", False),
    ],
)
def test_where_it_may_listen_without_keys(host: str, inside: bool) -> None:
    config = create_app().state.gateway.config
    assert is_loopback(host) is inside
    check_binding(config, host, insecure=True)
    if inside:
        check_binding(config, host, insecure=False)
    else:
        with pytest.raises(BadInput, match="--api-key"):
            check_binding(config, host, insecure=False)
        check_binding(create_app(KEYS).state.gateway.config, host, insecure=False)


async def test_a_page_of_others_cannot_reach_it_by_a_name_of_its_own() -> None:
    config = served_config(None, {"store": {"url": "memory"}}, "127.0.0.1", insecure=False)
    async with asking(config) as client:
        answers = [
            await client.get("/v1/models", headers={"host": host})
            for host in ("localhost:8080", "127.0.0.1:8080", "evil.example")
        ]
    assert [one.status_code for one in answers] == [200, 200, 400]


@pytest.mark.parametrize("key", ["short", "with blank inside", "ümläuts-in-it", ""])
def test_keys_that_are_none(key: str) -> None:
    with pytest.raises(BadInput, match="API key") as caught:
        create_app({"api_keys": [key]})
    assert not key or key not in str(caught.value)
