"""The defaults of a process: which model has no name, and how OpenAI is reached."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, TypeAlias

from antiphon.errors import BadInput

if TYPE_CHECKING:
    from openai import AsyncOpenAI

MODEL_VARIABLE = "OPENAI_DEFAULT_MODEL"
DEFAULT_MODEL = "gpt-5.6-luna"  # Source: `agents.models.default_models` of openai-agents 0.24.0.

Api: TypeAlias = Literal["chat_completions", "responses"]

_api: Api = "responses"
_client: AsyncOpenAI | None = None
_key: str | None = None


def get_default_model() -> str:
    """Return the name of the model that is used where none is named: OPENAI_DEFAULT_MODEL, else a fixed one."""
    return os.environ.get(MODEL_VARIABLE, DEFAULT_MODEL).lower()


def set_default_openai_api(api: Api) -> None:
    """Say which API OpenAI's models are asked by, where a provider does not."""
    global _api
    if api not in ("chat_completions", "responses"):
        raise BadInput(f'the API is {api!r}: it is "chat_completions" or "responses"')
    _api = api


def set_default_openai_client(client: AsyncOpenAI | None, use_for_tracing: bool = True) -> None:
    """Say which client OpenAI's models use, where a provider does not. No traces are sent to OpenAI in any case:
    `use_for_tracing` is there for code that gives it."""
    global _client
    _client = client


def set_default_openai_key(key: str | None, use_for_tracing: bool = True) -> None:
    """Say which key OpenAI's models use, where a provider does not; without one, OPENAI_API_KEY. `use_for_tracing` is as
    for the client."""
    global _key
    _key = key


def default_openai_api() -> Api:
    """Return what `set_default_openai_api` said last; the Responses API at first."""
    return _api


def default_openai_client() -> AsyncOpenAI | None:
    """Return what `set_default_openai_client` said last."""
    return _client


def default_openai_key() -> str | None:
    """Return what `set_default_openai_key` said last."""
    return _key
