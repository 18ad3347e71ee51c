"""No key in errors, events and logs: wherever a provider says it, and wherever what it says is cut."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import ProviderError
from antiphon.models import ChatCompletionsModel
from antiphon_providers.backends.concealing import Concealer

from .kinds import KEY, KINDS, make
from .loopback import Script, answer, chunk, chunked, data, serve, text

BEGUN = text("Hel", "lo", done=False)[:2]
ERROR = {"error": {"message": f"Incorrect key {KEY}: {KEY}", "code": 401}}
PAGE = "<html><title>{} {}</title></html>"

SCRIPTS: dict[str, Script] = {
    "an error at once": chunked([data(ERROR)]),
    "an error later": chunked([*BEGUN, data(ERROR)]),
    "an error beside a choice": chunked([*BEGUN, data({**chunk({"content": ""}, "error"), **ERROR})]),
    "an error of another form": chunked([*BEGUN, data({"detail": f"bad {KEY}"})]),
    "an event": chunked([*BEGUN, f"event: error\ndata: {KEY}\n\n".encode()]),
    "a line that is no JSON": chunked([*BEGUN, f"data: {{bad {KEY}\n\n".encode()]),
    "over two pieces": chunked([*BEGUN, data(ERROR)[:40], data(ERROR)[40:]]),
    "a text that is no answer": answer(f"{'y' * 45} {KEY}", content_type="text/plain"),
    **{
        f"a text, cut after {at}": answer("x" * at + KEY, "401 No", content_type="text/plain") for at in (470, 485, 494)
    },
    "a title": answer(PAGE.format("x" * 480, KEY), "401 No", content_type="text/html"),
}


async def drained(model: ChatCompletionsModel, stream: bool, events: list[Any]) -> None:
    """Ask, and put all events that come into `events`."""
    answered = await model.create({"input": "hello"}, stream=stream, events="dict")
    if stream:
        async for event in answered:
            events.append(event)  # noqa: PERF401  # also those before the error


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("kind", KINDS)
async def test_no_key_is_said(kind: str, stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for name, script in SCRIPTS.items():
        events: list[Any] = []
        async with serve(script) as server:
            made = make(kind, server.url)
            model = ChatCompletionsModel(made.model, backend=made.backend, profile="openai")
            with pytest.raises(ProviderError) as caught:
                await drained(model, stream, events)
            await model.close()
        error = caught.value
        shown = "".join((str(error), repr(vars(error)), repr(error.__cause__), json.dumps(events), caplog.text))
        assert KEY[:8] not in shown, name


@given(st.data())
def test_what_is_concealed_depends_on_no_cut(chosen: st.DataObject) -> None:
    spoken = data(chunk({"content": f"the key is {KEY}"}))
    body = b"".join([spoken, data(ERROR), f": {KEY[:5]}\n\ndata: {{{KEY}\n\n".encode(), spoken])
    cuts = sorted(chosen.draw(st.sets(st.integers(0, len(body)), max_size=8)))
    concealer = Concealer([KEY])
    pieces = [concealer.feed(body[start:end]) for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert b"".join([*pieces, concealer.finish()]) == Concealer([KEY]).feed(body)


def test_what_the_model_says_stays() -> None:
    """A key may be a word, as local servers want it."""
    spoken = data(chunk({"content": "ollama runs models"}))
    refused = data({"error": {"message": "ollama is no key"}})
    assert Concealer(["ollama"]).feed(spoken + refused) == spoken + refused.replace(b"ollama", b"***")
