"""Which backend answers: a model's name, through aliases and the names that backends answer to, to a model."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from antiphon.backend import Backend, Timeouts, load_backend, takes_option
from antiphon.errors import AntiphonError, BackendNotFound, BadInput, ProfileNotFound
from antiphon.models.chat import ChatCompletionsModel, choose_profile
from antiphon.models.retry import ModelRetrySettings, RetryPolicyContext
from antiphon.near import listing
from antiphon.profile import Profile
from antiphon.stream.faults import redact

from .config import BackendConfig, GatewayConfig, secret_of
from .errors import ApiError, Stopped
from .ids import OwnIds

MOST_MODELS = 1000  # that are kept: names come from requests
BY_URL = ("http", "openai_sdk")  # kinds whose `url` is of the web
LISTING = 10.0  # seconds that a backend may take to list its models


@dataclass(frozen=True, slots=True)
class Named:
    """A backend, and what the configuration says of it."""

    name: str
    backend: Backend
    config: BackendConfig


class Router:
    """Finds the model for a name. Raises BadInput for a configuration that names what is not there.

    `ids`: where the ids of its answers come from.
    """

    def __init__(
        self, config: GatewayConfig, backends: Mapping[str, Backend], profiles: Mapping[str, str | Profile]
    ) -> None:
        self.ids = OwnIds()
        self._config = config
        self._profiles = profiles
        named = {**{name: BackendConfig() for name in backends}, **config.backends} or config.named_backends()
        self._named = {
            name: Named(name, backends[name] if name in backends else _made(name, one, config), one)
            for name, one in named.items()
        }
        for one in self._named.values():
            self._check_profile(one)
        self._default = self._usual()
        self._models: OrderedDict[tuple[str, str], ChatCompletionsModel] = OrderedDict()
        for name, target in config.aliases.items():
            self._check_alias(name, target)

    def find(self, name: str) -> tuple[Named, ChatCompletionsModel]:
        """Return the backend and the model that answer to `name`. Raises ApiError 404 where none does."""
        named, model = self._place(self._config.aliases.get(name, name))
        return named, self._model(named, model)

    async def models(self) -> list[dict[str, Any]]:
        """Return the models of all backends and the aliases; a backend that cannot list its models lists none."""
        listed = await asyncio.gather(*(self._listed(named) for named in self._named.values()))
        aliased = [_model_object(name, "alias", {}) for name in self._config.aliases]
        return [*aliased, *(one for some in listed for one in some)]

    async def aclose(self) -> None:
        """Close the connections of all backends."""
        for named in self._named.values():
            await named.backend.aclose()

    # --- inside ------------------------------------------------------------------------------------------------

    def _usual(self) -> Named | None:
        """Return the backend that is asked for names that no other has: the default one, or the first that says none."""
        wanted = self._config.default_backend
        if wanted is not None:
            if wanted not in self._named:
                known = listing(wanted, self._named, "there are")
                raise BadInput(f"default_backend is {wanted!r}, and no backend is called so{known}")
            return self._named[wanted]
        return next((one for one in self._named.values() if not one.config.models), None)

    def _check_profile(self, named: Named) -> None:
        """Raise for a name that no profile has now, and not with the first request."""
        try:
            choose_profile(self._profile(named), named.config.kind, named.config.url or "", "")
        except ProfileNotFound as problem:
            if named.name in self._profiles:
                raise
            raise BadInput(f"backends.{named.name}.profile: {problem.found}") from None

    def _check_alias(self, name: str, target: str) -> None:
        try:
            self._place(target)
        except ApiError:
            known = ", ".join(f"{one}/MODEL" for one in self._named)
            raise BadInput(
                f"aliases.{name}: no backend answers to {target!r}: say which is meant, as in {known}, or name a "
                "default_backend"
            ) from None

    def _place(self, name: str) -> tuple[Named, str]:
        head, slash, rest = name.partition("/")
        if slash and rest and head in self._named and not self._listed_elsewhere(name):
            return self._named[head], rest if self._is_prefix(head) else name
        for named in self._named.values():
            if any(fnmatchcase(name, pattern) for pattern in named.config.models):
                return named, name
        if self._default is None:
            raise ApiError(
                404,
                f"The model '{name[:200]}' does not exist: no backend answers to it.",
                code="model_not_found",
                param="model",
            )
        return self._default, name

    def _listed_elsewhere(self, name: str) -> bool:
        return any(name in one.config.models for one in self._named.values())

    def _is_prefix(self, head: str) -> bool:
        """The replay backend's own names begin as its usual name does."""
        return self._named[head].config.kind != "replay"

    def _model(self, named: Named, name: str) -> ChatCompletionsModel:
        key = (named.name, name)
        if key in self._models:
            self._models.move_to_end(key)
            return self._models[key]
        model = self._models[key] = self._new(named, name)
        if len(self._models) > MOST_MODELS:
            self._models.popitem(last=False)
        return model

    def _profile(self, named: Named) -> str | Profile | None:
        return self._profiles.get(named.name, named.config.profile)

    def _new(self, named: Named, name: str) -> ChatCompletionsModel:
        one, retry = named.config, self._config.retry
        return ChatCompletionsModel(
            name,
            backend=named.backend,
            profile=choose_profile(self._profile(named), one.kind, one.url or "", name),
            retry=ModelRetrySettings(retry.attempts, policy=lambda context: _again(context, retry.longest_wait)),
            reasoning=one.reasoning,
            strict=self._config.strict,
            ids=self.ids,  # it knows what it gave: clients may send that back by its id
        )

    async def _listed(self, named: Named) -> list[dict[str, Any]]:
        single = len(self._named) == 1
        try:
            async with asyncio.timeout(LISTING):
                found = await named.backend.models()
        except (AntiphonError, TimeoutError) as problem:
            logging.getLogger("antiphon.gateway").warning(
                "the models of backend %r are not known: %s", named.name, redact(str(problem) or type(problem).__name__)
            )
            found = [{"id": name} for name in named.config.models if "*" not in name]
        plain = single or bool(named.config.models) or named is self._default
        names = {str(one["id"]): one for one in found if isinstance(one.get("id"), str)}
        return [
            _model_object(name if plain else f"{named.name}/{name}", named.name, one)
            for name, one in names.items()
            if not named.config.models or any(fnmatchcase(name, pattern) for pattern in named.config.models)
        ]


def _model_object(name: str, owner: str, held: Mapping[str, Any]) -> dict[str, Any]:
    created = held.get("created")
    return {
        "id": name,
        "object": "model",
        "created": created if isinstance(created, int) else 0,
        "owned_by": str(held.get("owned_by") or owner),
    }


def _again(context: RetryPolicyContext, longest: float) -> bool:
    """Return whether to try again: what may pass, unless the wait that is asked for is too long to keep a caller."""
    advice = context.provider_advice
    if advice is None or not advice.suggested or isinstance(context.error, Stopped):
        return False
    return advice.retry_after is None or advice.retry_after <= longest


def _made(name: str, one: BackendConfig, config: GatewayConfig) -> Backend:
    limits = config.limits
    given: dict[str, Any] = {"base_url": one.url, "api_key": secret_of(one, name), "headers": one.headers or None}
    if one.kind == "http" and not one.url:
        raise BadInput(f"backends.{name}.url is missing: such as http://127.0.0.1:8000/v1")
    if one.kind in BY_URL and one.url and not one.url.lower().startswith(("http://", "https://")):
        raise BadInput(f"backends.{name}.url begins with neither http:// nor https://: {redact(one.url)!r}")
    try:
        if "timeout" not in one.options and takes_option(one.kind, "timeout"):
            times = Timeouts(limits.connect, limits.first_byte, limits.idle, limits.total)
            given["timeout"] = times
        options = {key: value for key, value in given.items() if value is not None}
        _check_options(one.kind, options)
        return load_backend(one.kind, **{**options, **one.options})
    except BackendNotFound as problem:
        raise BadInput(f"backends.{name}.kind: {problem.found}") from None
    except BadInput as problem:
        raise BadInput(f"backends.{name}: {problem}") from None


def _check_options(kind: str, options: Mapping[str, Any]) -> None:
    """Raise BadInput for a setting that backends of that kind do nothing with."""
    for option in options:
        if not takes_option(kind, option):
            setting = "url" if option == "base_url" else option
            raise BadInput(f"a backend of kind {kind!r} takes no {setting}: leave it out")
