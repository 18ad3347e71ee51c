"""Backends by name, streams that are begun, options, and what is said where an SDK is missing."""

from __future__ import annotations

import pickle
import sys
from collections.abc import AsyncIterator
from importlib.metadata import entry_points
from typing import Any

import pytest

from antiphon import AntiphonError, errors
from antiphon.backend import Backend, Timeouts, begin, load_backend, takes_option
from antiphon_providers.backends import (
    AnyLLMBackend,
    HttpBackend,
    LiteLLMBackend,
    OpenAISDKBackend,
    ReplayBackend,
)

INSTALLED = {point.name for point in entry_points(group="antiphon.backends")}
installed = pytest.mark.skipif("replay" not in INSTALLED, reason="the package was installed without these entry points")
BODY = {"model": "echo", "messages": [{"role": "user", "content": "hi"}]}


@installed
async def test_a_backend_by_name() -> None:
    backend = load_backend("replay")
    assert isinstance(backend, ReplayBackend)
    assert isinstance(backend, Backend)
    assert (await backend.complete(BODY))["choices"][0]["message"]["content"] == "You said: hi"


@installed
def test_its_options() -> None:
    backend = load_backend("http", base_url="http://127.0.0.1:8000/", api_key="tk-0123456789")
    assert repr(backend) == "HttpBackend('http://127.0.0.1:8000/v1')"
    with pytest.raises(errors.BadInput, match=r"'http'.*base_url"):
        load_backend("http")
    with pytest.raises(errors.BadInput, match=r"'replay'.*base_url.*it takes recordings, always, delay"):
        load_backend("replay", base_url="http://127.0.0.1:8000")


@installed
@pytest.mark.parametrize(("kind", "option", "taken"), [("http", "timeout", True), ("replay", "timeout", False)])
def test_what_a_kind_takes(kind: str, option: str, taken: bool) -> None:
    assert takes_option(kind, option) is taken


@installed
def test_all_names_are_known() -> None:
    assert {"any_llm", "http", "litellm", "openai_sdk", "replay"} <= INSTALLED


def test_a_name_that_nobody_has() -> None:
    with pytest.raises(errors.BackendNotFound, match="'carrier-pigeon'"):
        load_backend("carrier-pigeon")


@pytest.mark.parametrize(
    ("kind", "module", "extra"), [(LiteLLMBackend, "litellm", "litellm"), (AnyLLMBackend, "any_llm", "any-llm")]
)
def test_an_sdk_that_is_missing(kind: Any, module: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(errors.ExtraMissing, match=rf"antiphon\[{extra}\]") as caught:
        kind()
    assert caught.value.extra == extra


@pytest.mark.parametrize("kind", [HttpBackend, OpenAISDKBackend, LiteLLMBackend, AnyLLMBackend])
@pytest.mark.filterwarnings("ignore")
def test_no_backend_shows_its_key(kind: Any) -> None:
    if kind in (LiteLLMBackend, AnyLLMBackend):
        pytest.importorskip("litellm" if kind is LiteLLMBackend else "any_llm")
    shown = repr(kind("http://singer:verysecret@127.0.0.1:8000/v1?key=tk-0123456789", "tk-0123456789"))
    assert shown == f"{kind.__name__}('http://127.0.0.1:8000/v1')"


async def test_openai_without_any_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(errors.BadInput, match="OPENAI_API_KEY"):
        await begin(OpenAISDKBackend().stream(BODY))


async def test_any_llm_without_a_provider() -> None:
    pytest.importorskip("any_llm")
    with pytest.raises(errors.BadInput, match="provider:model"):
        await begin(AnyLLMBackend(api_key="tk-0123456789").stream(BODY))
    with pytest.raises(errors.BadInput, match="provider="):
        await AnyLLMBackend(api_key="tk-0123456789").models()
    with pytest.raises(errors.BadInput, match="'nobody'"):
        await begin(AnyLLMBackend(api_key="tk-0123456789", provider="nobody").stream(BODY))


async def test_any_llm_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("any_llm")
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    with pytest.raises((errors.AuthenticationFailed, errors.ExtraMissing)):
        await begin(AnyLLMBackend().stream({**BODY, "model": "mistral:small"}))
    with pytest.raises(errors.AuthenticationFailed, match="OPENAI_API_KEY"):
        await begin(AnyLLMBackend().stream({**BODY, "model": "openai/small"}))


@pytest.mark.filterwarnings("ignore")
async def test_litellm_with_a_model_of_nobody() -> None:
    pytest.importorskip("litellm")
    with pytest.raises(errors.BadRequest, match="echo"):
        await begin(LiteLLMBackend().stream(BODY))
    assert await LiteLLMBackend().models() == []


# --- begin -----------------------------------------------------------------------------------------------------------


class Source:
    """A stream that remembers whether it was closed."""

    def __init__(self, *pieces: bytes | Exception) -> None:
        self.pieces = iter(pieces)
        self.closed = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        piece = next(self.pieces, None)
        if piece is None:
            raise StopAsyncIteration
        if isinstance(piece, Exception):
            raise piece
        return piece

    async def aclose(self) -> None:
        self.closed = True


@pytest.mark.parametrize("pieces", [(), (b"a",), (b"a", b"b", b"c")])
async def test_a_begun_stream_is_the_same(pieces: tuple[bytes, ...]) -> None:
    assert tuple([one async for one in await begin(Source(*pieces))]) == pieces


async def test_what_fails_before_the_first_piece_raises_at_once() -> None:
    with pytest.raises(errors.RateLimited):
        await begin(Source(errors.RateLimited("slow")))
    begun = await begin(Source(b"a", errors.ServerFailed("gone")))
    assert await anext(begun) == b"a"
    with pytest.raises(errors.ServerFailed):
        await anext(begun)


async def test_a_begun_stream_that_is_not_pulled_is_closed() -> None:
    source = Source(b"a")
    begun = await begin(source)
    await begun.aclose()
    assert source.closed


# --- errors ----------------------------------------------------------------------------------------------------------


def test_the_errors_are_one_tree() -> None:
    kinds = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert all(issubclass(kind, AntiphonError) for kind in kinds)
    assert {kind.__name__ for kind in kinds if issubclass(kind, errors.ProviderError) and kind.transient} == {
        "ConnectionFailed",
        "RateLimited",
        "ServerFailed",
        "TimedOut",
    }


@pytest.mark.parametrize(
    "error",
    [
        errors.RateLimited("slow", status_code=429, retry_after=2.0, request_id="r", code="c", param="p", body="b"),
        errors.TimedOut("late", stage="idle"),
        errors.ExtraMissing("no", extra="litellm"),
        errors.SourceError("server_error", "gone"),
    ],
)
def test_errors_survive_pickling(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_the_usual_times() -> None:
    assert Timeouts() == Timeouts(connect=10, first_byte=600, idle=300, total=None)
