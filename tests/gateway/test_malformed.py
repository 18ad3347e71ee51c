"""Requests that were right once, and then broken somewhere: refused or answered, with no fault, no traceback, no leak.

The environment variable GATEWAY_MALFORMED says how many (a thousand); each is made from its number.
"""

from __future__ import annotations

import copy
import json
import logging
import os
import random
from collections import Counter
from typing import Any

import pytest

from .asking import TOOL, Json, asking
from .test_codex import HISTORY, TOOLS

COUNT = int(os.environ.get("GATEWAY_MALFORMED", "1000"))
SECRET = "xyzzy-secret"
RIGHT: list[Json] = [
    {"model": "echo", "input": SECRET, "instructions": SECRET, "temperature": 1, "top_p": 1, "metadata": {"a": SECRET}},
    {
        "model": "echo",
        "input": HISTORY,
        "tools": TOOLS,
        "tool_choice": "auto",
        "include": ["reasoning.encrypted_content"],
    },
    {
        "model": "replay/tools",
        "tools": [TOOL],
        "tool_choice": {"type": "function", "name": "weather"},
        "text": {
            "format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True},
            "verbosity": "low",
        },
        "reasoning": {"effort": "low", "summary": "auto"},
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": SECRET},
                    {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"},
                ],
            },
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": SECRET}],
                "encrypted_content": "AAAA",
            },
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Paris"}'},
            {"type": "function_call_output", "call_id": "c1", "output": SECRET},
            {"type": "custom_tool_call", "call_id": "c2", "name": "apply_patch", "input": SECRET},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": SECRET}]},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": SECRET, "annotations": [], "logprobs": []}],
            },
        ],
    },
]
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    2**70,
    1e308,
    "",
    "x" * 600,
    "\x00",
    "x\nWARNING forged \x1b[31m",
    "🎼",
    [],
    [[]],
    {},
    {"": {}},
    {"type": None},
    [None],
    ["x"],
    {"type": "message"},
    "function_call",
    0.5,
]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return all places in JSON data, as a container and a key."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]


def broken(number: int) -> bytes:
    """Return a request with one to three breaches."""
    chance = random.Random(number)
    body = copy.deepcopy(chance.choice(RIGHT))
    body["stream"] = chance.random() < 0.3
    for _ in range(chance.randint(1, 3)):
        holder, key = chance.choice(places(body))
        match chance.randrange(4):
            case 0 | 1:
                holder[key] = copy.deepcopy(chance.choice(ODD))
            case 2:
                del holder[key]
            case _ if isinstance(holder, dict):
                holder[chance.choice(["type", "role", "id", "content", "call_id", "x\n"])] = copy.deepcopy(
                    chance.choice(ODD)
                )
            case _:
                holder.append(copy.deepcopy(chance.choice(ODD)))
    data = json.dumps(body).encode()
    return data if chance.random() < 0.9 else data[: chance.randrange(len(data))]


async def test_broken_requests(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("aiosqlite", "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)  # of others; a server runs them so
    statuses: Counter[int] = Counter()
    headers = {"content-type": "application/json", "authorization": f"Bearer {SECRET}"}
    async with asking({"limits": {"body_bytes": 1_000_000}}) as client:
        for number in range(COUNT):
            answer = await client.post("/v1/responses", content=broken(number), headers=headers)
            statuses[answer.status_code] += 1
            assert answer.status_code in (200, 400, 404), (number, answer.text, caplog.messages[-1:])
            if answer.status_code != 200:
                assert set(answer.json()["error"]) == {"message", "type", "param", "code"}, number
    assert min(statuses[200], statuses[400]) > COUNT // 20, statuses
    assert "Traceback" not in caplog.text
    assert SECRET not in caplog.text
    told = [record.getMessage() for record in caplog.records if record.name.startswith("antiphon")]
    assert [line for line in told if not line.isprintable() or len(line) > 500] == []
    assert any("forged" in line for line in told)
