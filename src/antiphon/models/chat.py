"""`ChatCompletionsModel`: Responses requests to any backend that speaks Chat Completions."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal

import msgspec

from antiphon.backend import Backend, Timeout, load_backend, takes_query
from antiphon.errors import BadInput
from antiphon.ids import IdsChoice
from antiphon.logger import logger
from antiphon.profile import DEFAULT, Profile, find_profile, load_profile, profile_by_word
from antiphon.request import Change, to_chat_request
from antiphon.request.read import settled
from antiphon.stream.chunk import fields, plain
from antiphon.stream.emit import EventStyle
from antiphon.stream.faults import redact

from . import reasoning_content_replay as replay
from .call import CallModel, ModelCall
from .exchange import Exchange
from .interface import ModelResponse
from .retry import ModelRetrySettings
from .retrying import Retrying

OPENAI_URL = "https://api.openai.com/v1"
# backend -> the profile of what it gives, whatever the model behind it
SDK_PROFILES = {"litellm": "litellm", "any_llm": "any_llm"}
MOST_TOLD = 100  # different changes that one model logs


class ChatCompletionsModel(CallModel):
    """One model behind a Chat Completions backend.

    `backend`: the name of an installed kind ("http", "openai_sdk", "litellm", "any_llm", "replay", …), which is made
    with `base_url`, `api_key` and `options` (`headers`, `timeout`, …), or a `Backend`. "http" without a `base_url` is
    OpenAI's, with the key in OPENAI_API_KEY. `profile`: a name, a `Profile`, or None for the one that knows the URL or
    the model. `retry`: when a request is tried again, unless its settings say otherwise. `reasoning`: whether it is
    shown as "summary" or as "text". `strict`: what cannot be carried raises BadRequest instead of being logged, and
    what has no place in the events fails the response. Which reasoning goes back is the profile's to say, unless
    `should_replay_reasoning_content` does: then as `reasoning_content`, in all turns.

    Raises BackendNotFound, ProfileNotFound and BadInput for options that are none.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        profile: str | Profile | None = None,
        backend: str | Backend = "http",
        retry: ModelRetrySettings | None = None,
        reasoning: Literal["summary", "text"] = "summary",
        strict: bool = False,
        ids: IdsChoice = "random",
        created_at: int | None = None,
        should_replay_reasoning_content: replay.ShouldReplayReasoningContent | None = None,
        **options: Any,
    ) -> None:
        self.model = model
        self.backend = make_backend(backend, base_url, api_key, options)
        self.profile = choose_profile(profile, backend, base_url, model)
        self._should_replay, self._url = should_replay_reasoning_content, (base_url or "").rstrip("/") or None
        if should_replay_reasoning_content is not None:
            self.profile = replace(self.profile, reasoning_replay="reasoning_content", reasoning_replay_always=True)
        self.retry = retry
        self._reasoning: Literal["summary", "text"] = reasoning
        self._strict = strict
        self._ids: IdsChoice = ids
        self._created_at = created_at
        self._told: set[str] = set()

    def __repr__(self) -> str:
        return f"ChatCompletionsModel({self.model!r}, profile={self.profile.name!r}, backend={self.backend!r})"

    def exchange(
        self,
        request: Any,
        *,
        stream: bool = False,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        timeout: Timeout | None = None,
        retry: ModelRetrySettings | None = None,
        preserve_raw_usage: bool = False,
    ) -> Exchange:
        """Return the request, ready to be sent; `request` are Responses create parameters, a mapping or an object.

        The events repeat the model that it names; the one that is asked is always this one. Its `extra_headers`,
        `extra_query` and `timeout` count where none are given here. `preserve_raw_usage`: the provider's own usage is
        in the response's `provider_data`. Raises BadRequest where it cannot be sent, BadInput where the backend takes
        no query for one call.
        """
        held = {key: one if key == "input" else plain(one) for key, one in settled(fields(request)).items()}
        if self._should_replay is not None and isinstance(held.get("input"), list):
            held["input"] = [item for item in held["input"] if self._goes_back(fields(item), self._should_replay)]
        asked_with = {**fields(held.get("extra_query")), **(query or {})}
        if asked_with and not takes_query(self.backend):
            raise BadInput(
                f"extra_query: {self.backend!r} has one query for all requests; give it when the backend is made"
            )
        chat = to_chat_request({**held, "model": self.model}, profile=self.profile, stream=stream, strict=self._strict)
        self._tell(chat.losses)
        chat = replace(chat, body=sendable(chat.body))
        own = self.retry
        stored = (held.get("previous_response_id"), held.get("conversation"))
        return Exchange(
            self.backend,
            chat,
            {**held, "model": held.get("model") or self.model},
            self.profile,
            Retrying(own.resolve(retry) if own else retry, self.get_retry_advice, stream, *stored),
            headers={**fields(held.get("extra_headers")), **(headers or {})} or None,
            query=asked_with or None,
            timeout=held.get("timeout") if timeout is None else timeout,
            ids=self._ids,
            created_at=self._created_at,
            reasoning=self._reasoning,
            strict=self._strict,
            preserve_raw_usage=preserve_raw_usage,
        )

    async def create(
        self,
        request: Any,
        *,
        stream: bool | None = None,
        events: EventStyle = "openai",
        raise_on_error: bool = True,
        headers: Mapping[str, str] | None = None,
        timeout: Timeout | None = None,  # noqa: ASYNC109
        retry: ModelRetrySettings | None = None,
    ) -> Any:
        """Return the response, or, streamed, an `EventStream`: an async iterator of events, with `aclose`.

        `request`: Responses create parameters, a mapping or an object. `stream`: whether to stream; None is as the
        request says. `events`: "openai" (objects), "dict" or "sse" (bytes; a response is a dict then).
        `raise_on_error`: a failed response raises, streamed after its events; else it is in them, or returned. What
        fails before the first event can be handed out raises from here.
        """
        streamed = bool(fields(request).get("stream")) if stream is None else stream
        exchange = self.exchange(request, stream=streamed, headers=headers, timeout=timeout, retry=retry)
        if streamed:
            return await exchange.stream(events, raise_on_error=raise_on_error)
        return await exchange.response(events, raise_on_error=raise_on_error)

    async def answer(self, call: ModelCall) -> ModelResponse:
        """Return the answer to a call. Raises a ProviderError where it failed."""
        return ModelResponse.of(await self._asked(call, stream=False).response())

    async def events(self, call: ModelCall) -> AsyncGenerator[Any, None]:
        """Yield the events of the answer. What fails before the first item raises at once; later, after the last."""
        async with aclosing(await self._asked(call, stream=True).stream()) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        """Close the connections of the event loop that runs. The next request opens new ones."""
        await self.backend.aclose()

    # --- inside ------------------------------------------------------------------------------------------------

    def _asked(self, call: ModelCall, *, stream: bool) -> Exchange:
        settings = call.model_settings
        headers = {name: value for name, value in (settings.extra_headers or {}).items() if isinstance(value, str)}
        return self.exchange(
            call.params(),
            stream=stream,
            headers=headers,
            query=settings.extra_query,
            timeout=settings.timeout,
            retry=settings.retry,
            preserve_raw_usage=bool(settings.preserve_raw_usage),
        )

    def _goes_back(self, item: Mapping[str, Any], should: replay.ShouldReplayReasoningContent) -> bool:
        return item.get("type") != "reasoning" or should(replay.asked_about(item, self.model, self._url))

    def _tell(self, losses: Iterable[Change]) -> None:
        """Log what is lost of a request: each kind of it once, whatever its place."""
        for change in losses:
            told = redact(re.sub(r"\[\d+\]", "[…]", str(change)))
            if told not in self._told and len(self._told) < MOST_TOLD:
                self._told.add(told)
                logger.warning("model %s: %s", self.model, told)


def sendable(body: dict[str, Any]) -> dict[str, Any]:
    """Return a body that can be written as JSON: as it is, or where a text holds half a character, with a sign for it."""
    try:
        msgspec.json.encode(body)
    except (TypeError, ValueError, RecursionError):
        whole: dict[str, Any] = plain(body)
        return whole
    return body


def make_backend(
    backend: str | Backend, base_url: str | None, api_key: str | None, options: Mapping[str, Any]
) -> Backend:
    """Return the backend: one that was given as it is, else a new one of the kind that is named.

    Raises BadInput where one was given together with what it would be made with.
    """
    asked = {"base_url": base_url, "api_key": api_key, **options}
    given = {name: value for name, value in asked.items() if value is not None}
    if isinstance(backend, str):
        if backend == "http" and base_url is None:
            given = {"base_url": OPENAI_URL, "api_key": os.environ.get("OPENAI_API_KEY"), **given}
        return load_backend(backend, **given)
    if not isinstance(backend, Backend):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers without types
        missing = [name for name in ("form", "stream", "complete", "models", "aclose") if not hasattr(backend, name)]
        raise BadInput(
            f"backend is {type(backend).__name__}, which has no {', '.join(missing)}: it is the name of a kind, or has "
            "all members of antiphon.backend.Backend"
        )
    if given:
        raise BadInput(f"{', '.join(given)}: a backend that was made already takes no such option")
    return backend


def choose_profile(profile: str | Profile | None, backend: str | Backend, base_url: str | None, model: str) -> Profile:
    """Return the profile: the given one, else that of the backend's SDK, else the one that knows the URL or the model.

    An SDK hands `reasoning_content` on as it is, so it goes back to models that want it there whatever is between.
    """
    if isinstance(profile, Profile):
        return profile
    if profile is not None:
        return load_profile(profile)
    if isinstance(backend, str) and backend in SDK_PROFILES:
        known, behind = load_profile(SDK_PROFILES[backend]), profile_by_word(model)
        if behind is None or behind.reasoning_replay != "reasoning_content":
            return known
        always, family = behind.reasoning_replay_always, behind.family or behind.name
        return replace(known, reasoning_replay="reasoning_content", reasoning_replay_always=always, family=family)
    url = OPENAI_URL if base_url is None and backend in ("http", "openai_sdk") else base_url or ""
    return find_profile(base_url=url, model=model) or DEFAULT
