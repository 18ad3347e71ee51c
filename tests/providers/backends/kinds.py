"""The backends that reach a server, each made for a URL, and what the tests ask of all of them."""

from __future__ import annotations

import gc
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from antiphon import aconvert, aconvert_sse
from antiphon.backend import Backend
from antiphon_conformance import check
from antiphon_providers.backends import AnyLLMBackend, HttpBackend, LiteLLMBackend, OpenAISDKBackend

KEY = "tk-0123456789-verysecret-abcdef"
USER = [{"role": "user", "content": "hi"}]

# LiteLLM imports itself bit by bit, which warns, and leaves what it started to the garbage collector.
NOISY = pytest.mark.filterwarnings("ignore")
KINDS = [
    pytest.param("http", id="http"),
    pytest.param("openai_sdk", id="openai_sdk"),
    pytest.param("litellm", id="litellm", marks=NOISY),
    pytest.param("any_llm", id="any_llm"),
]


class Made(NamedTuple):
    """A backend, and the name that it has for the model `tiny` of the server."""

    backend: Backend
    model: str

    def body(self, **more: Any) -> dict[str, Any]:
        """Return a request."""
        return {"model": self.model, "messages": USER, **more}


def make(kind: str, url: str, **options: Any) -> Made:
    """Return a backend of that kind for the server at `url`. Skips where its SDK is not installed."""
    options = {"api_key": KEY, **options}
    match kind:
        case "http":
            return Made(HttpBackend(url, **options), "tiny")
        case "openai_sdk":
            return Made(OpenAISDKBackend(f"{url}/v1", **options), "tiny")
        case "litellm":
            pytest.importorskip("litellm")
            return Made(LiteLLMBackend(f"{url}/v1", **options), "openai/tiny")
        case _:
            pytest.importorskip("any_llm")
            return Made(AnyLLMBackend(f"{url}/v1", **options), "openai:tiny")


@asynccontextmanager
async def made(kind: str, url: str, **options: Any) -> AsyncIterator[Made]:
    """Return a backend as `make` does, and close it at the end of the block."""
    one = make(kind, url, **options)
    try:
        yield one
    finally:
        await one.backend.aclose()


async def events_of(one: Made, body: Mapping[str, Any] | None = None, **options: Any) -> list[dict[str, Any]]:
    """Return the events of an answer; they keep the rules."""
    convert = aconvert_sse if one.backend.form == "sse" else aconvert
    stream = one.backend.stream(body or one.body())
    events = [event async for event in convert(stream, events="dict", **options)]
    report = check(events)
    assert report.ok, report.findings
    return events


async def drained(one: Made, **options: Any) -> int:
    """Pull a stream to its end; returns how many pieces came."""
    count = 0
    async for _ in one.backend.stream(one.body(), **options):
        count += 1
    return count


def text_of(response: Mapping[str, Any]) -> str:
    """Return all text of a response."""
    messages = (item for item in response["output"] if item["type"] == "message")
    return "".join(part.get("text", "") for item in messages for part in item["content"])


def sockets() -> int:
    """Return how many sockets this process has open."""
    gc.collect()
    count = 0
    for number in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{number}").startswith("socket:")
        except OSError:  # the one that lists the folder
            continue
    return count
