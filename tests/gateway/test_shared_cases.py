"""Real faults of other bridges, from the folder beside the checkout: each played by a backend, seen by a client."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.providers.backends import loopback
from tests.providers.backends.loopback import Script

from .asking import Json, asking, events_in, judged
from .conftest import over
from .scripted_backend import Scripted

FOLDER = Path(__file__).parents[3] / "shared" / "cases" / "bugs"
CASES: dict[str, Json] = {
    case["id"]: case
    for path in sorted(FOLDER.glob("*.json"))
    if (case := json.loads(path.read_text()))["area"] == "gateway"
}
if not CASES:
    pytest.skip("no shared cases beside the checkout", allow_module_level=True)

# cases that are seen elsewhere, or that cannot come up here
ELSEWHERE = {
    "133-second-round-deltas-without-added": "the gateway runs no tools: a response is one answer of the backend",
    "158-disconnect-does-not-stop-upstream": "test_leaving.py, over real connections",
    "160-upstream-error-before-first-byte": "test_scenarios.py, error-400",
    "161-upstream-429-retry-after": "test_scenarios.py, error-429",
    "167-store-only-finished-responses": "test_store.py, what failed is not stored, and what was stored is what was streamed",
    "169-usage-when-client-leaves-early": "test_leaving.py: counted as left, nothing is raised",
}


async def streamed(script: Script, **params: Any) -> tuple[httpx2.Response, list[Json]]:
    """Return the answer of a gateway whose backend plays `script`, and its events."""
    async with (
        loopback.serve(script) as server,
        asking({"backends": {"b": {"url": server.url}}, "retry": {"attempts": 0}}) as client,
    ):
        answer = await client.post("/v1/responses", json={"model": "m", "input": "x", "stream": True, **params})
    events = judged(events_in(answer.content)) if answer.status_code == 200 else []
    return answer, events


def text_of(events: list[Json]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")


async def thin_envelopes(case: Json, scripted: Scripted) -> None:
    pieces = [loopback.data(chunk) for chunk in case["input"]["upstream_chunks"]]
    _, events = await streamed(loopback.chunked([*pieces, loopback.data("[DONE]")]))
    lifecycle = [event for event in events if "response" in event]
    assert all(set(event) == {"type", "response", "sequence_number"} for event in lifecycle)
    assert events[0]["response"]["output"] == []


async def first_line_is_an_error(case: Json, scripted: Scripted) -> None:
    lines = [f"{line}\n\n".encode() for line in case["input"]["sse"]]
    answer, _ = await streamed(loopback.chunked(lines))
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    _, events = await streamed(loopback.chunked([loopback.data(loopback.chunk({"content": "Half"})), *lines]))
    assert events[-1]["response"]["error"]["code"] == "rate_limit_exceeded"


async def separators(case: Json, scripted: Scripted) -> None:
    said = "a\u2028b\u0085c\u2029d"
    raw = json.dumps(loopback.chunk({"content": said}, "stop"), ensure_ascii=False)
    answer, events = await streamed(loopback.chunked([loopback.data(raw), loopback.data("[DONE]")]))
    assert text_of(events) == said
    assert not [one for one in "\u2028\u2029\u0085" if one in answer.text]


async def cut_reads(case: Json, scripted: Scripted) -> None:
    reads = [bytes.fromhex(one) for one in case["input"]["reads_hex"]]
    end = loopback.data(loopback.chunk(finish="stop"))
    _, events = await streamed(loopback.chunked([*reads, end, loopback.data("[DONE]")]))
    assert [event["delta"] for event in events if event["type"] == "response.output_text.delta"] == ["é"]


async def unsupported_item(case: Json, scripted: Scripted) -> None:
    async with asking(over(scripted)) as client:
        answer = await client.post("/v1/responses", json={"model": "text", **case["input"]["request"]})
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["param"][:5]) == (400, "invalid_request_error", "input")
    assert "item_reference" in error["message"]
    assert "Error" not in error["message"]


async def hosted_tools(case: Json, scripted: Scripted) -> None:
    request = case["input"]["request"]
    async with asking(over(scripted)) as client:
        answer = await client.post("/v1/responses", json={"model": "text", **request})
        forced = await client.post(
            "/v1/responses", json={"model": "text", **request, "tool_choice": {"type": "web_search"}}
        )
    assert answer.status_code == 200
    assert "web_search" in answer.headers["warning"]
    assert [tool["function"]["name"] for tool in scripted.asked[0]["tools"]] == ["f"]
    assert forced.status_code == 400


async def tool_search(case: Json, scripted: Scripted) -> None:
    async with asking(over(scripted)) as client:
        answer = await client.post("/v1/responses", json={"model": "tool", **case["input"]["request"]})
    assert [item["type"] for item in answer.json()["output"]] == ["tool_search_call"]


async def all_context_each_time(case: Json, scripted: Scripted) -> None:
    async with asking(over(scripted)) as client:
        answer = await client.post("/v1/responses", json={"model": "text", **case["input"]["request"]})
        events = judged(events_in(answer.content))
        gone = await client.get(f"/v1/responses/{events[-1]['response']['id']}")
    assert (answer.status_code, gone.status_code) == (200, 404)
    assert not {"include", "store", "prompt_cache_key"} & set(scripted.asked[0])


SEEN: dict[str, Callable[[Json, Scripted], Awaitable[None]]] = {
    "047-created-event-too-thin": thin_envelopes,
    "066-code-only-rate-limit-before-output": first_line_is_an_error,
    "114-unsupported-input-item": unsupported_item,
    "118-hosted-tool-types-rejected": hosted_tools,
    "119-tool-search-dropped-silently": tool_search,
    "163-sse-unicode-line-separator": separators,
    "164-sse-crlf-and-split-utf8": cut_reads,
    "168-codex-full-context-store-false": all_context_each_time,
}


@pytest.mark.parametrize("name", CASES)
async def test_a_fault_of_others_is_none_here(name: str, scripted: Scripted) -> None:
    if name in ELSEWHERE:
        pytest.skip(ELSEWHERE[name])
    await SEEN[name](CASES[name], scripted)
