"""`MultiProvider`: a model by its name, whatever it is behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from antiphon.backend import Backend, load_backend
from antiphon.errors import BadInput

from .chat import ChatCompletionsModel, choose_profile
from .interface import Model, ModelProvider, close_all
from .openai_provider import OpenAIProvider
from .sdks import AnyLLMProvider, LitellmProvider

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Mode: TypeAlias = Literal["error", "model_id"]
SCHEMES = ("http://", "https://")


@runtime_checkable
class ProviderMap(Protocol):
    """A map of providers that is no plain mapping."""

    def get_provider(self, prefix: str) -> ModelProvider | None: ...


class MultiProvider(ModelProvider):
    """Finds a model by what its name begins with.

    `provider_map`: prefix -> provider, asked first, with the rest of the name. Then:

    | name | model |
    |---|---|
    | `openai/<model>`, `<model>` | OpenAI's, as `OpenAIProvider` makes them with the options `openai_…` |
    | `litellm/<model>` | through LiteLLM |
    | `any-llm/<model>` | through any-llm |
    | `http://<host>/v1#<model>`, `https://…` | of that server, over plain HTTP; models of one URL share connections |
    | `replay/<scenario>` | no model: a built-in recording |

    `openai_prefix_mode` "model_id": `openai/` is part of the name. `unknown_prefix_mode` "model_id": a name with
    another prefix is one of OpenAI's; "error": BadInput. `http_options` go to the models of URLs (`api_key`,
    `profile`, `headers`, …). Chat models are made with `options` too: `retry`, `reasoning`, `strict`, `ids`.
    """

    def __init__(
        self,
        *,
        provider_map: Mapping[str, ModelProvider] | ProviderMap | None = None,
        openai_api_key: str | None = None,
        openai_base_url: str | None = None,
        openai_client: AsyncOpenAI | None = None,
        openai_organization: str | None = None,
        openai_project: str | None = None,
        openai_use_responses: bool | None = None,
        openai_strict_feature_validation: bool = False,
        openai_prefix_mode: Literal["alias", "model_id"] = "alias",
        unknown_prefix_mode: Mode = "error",
        openai_buffer_streamed_tool_calls: bool = False,
        http_options: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        _among("openai_prefix_mode", openai_prefix_mode, ("alias", "model_id"))
        _among("unknown_prefix_mode", unknown_prefix_mode, ("error", "model_id"))
        self.provider_map = provider_map
        self.openai_provider = OpenAIProvider(
            api_key=openai_api_key,
            base_url=openai_base_url,
            openai_client=openai_client,
            organization=openai_organization,
            project=openai_project,
            use_responses=openai_use_responses,
            strict_feature_validation=openai_strict_feature_validation,
            buffer_streamed_tool_calls=openai_buffer_streamed_tool_calls,
            **options,
        )
        self._own: dict[str, ModelProvider] = {
            **({"openai": self.openai_provider} if openai_prefix_mode == "alias" else {}),
            "litellm": LitellmProvider(**options),
            "any-llm": AnyLLMProvider(**options),
        }
        self._refuse = unknown_prefix_mode == "error"
        self._http_options, self._options = dict(http_options or {}), options
        self._backends: dict[str, Backend] = {}

    def get_model(self, model_name: str | None) -> Model:
        """Return the model of that name; None is OpenAI's default model. Raises BadInput for an unknown prefix."""
        if model_name is None:
            return self.openai_provider.get_model(None)
        if model_name.startswith(SCHEMES):
            return self._at_url(model_name)
        prefix, slash, rest = model_name.partition("/")
        mapped = self._mapped(prefix) if slash else None
        provider = self._own.get(prefix) if slash and mapped is None else mapped
        if provider is not None:
            return provider.get_model(rest)
        if slash and prefix == "replay":
            return ChatCompletionsModel(model_name, backend=self._backend("replay"), **self._options)
        if slash and prefix != "openai" and self._refuse:
            own = [*self.provider_map] if isinstance(self.provider_map, Mapping) else []
            known = ", ".join(sorted({*own, *self._own, "openai", "replay"}))
            raise BadInput(
                f"Unknown prefix: {prefix}, in the model {model_name!r}; known are: {known}, and http:// or https://. "
                'Add it to provider_map, or take the whole for the name of a model by unknown_prefix_mode="model_id"'
            )
        return self.openai_provider.get_model(model_name)

    async def aclose(self) -> None:
        """Close what the providers and the backends keep open, for the event loop that runs."""
        mapped = self.provider_map.values() if isinstance(self.provider_map, Mapping) else ()
        providers = {id(one): one for one in (self.openai_provider, *self._own.values(), *mapped)}.values()
        await close_all(one.aclose for one in (*providers, *self._backends.values()))

    def _mapped(self, prefix: str) -> ModelProvider | None:
        if self.provider_map is None:
            return None
        held = self.provider_map
        return held.get(prefix) if isinstance(held, Mapping) else held.get_provider(prefix)

    def _at_url(self, name: str) -> Model:
        url, _, model = name.partition("#")
        if not model:
            raise BadInput(f"{name!r} names no model: it is written behind the URL, http://host/v1#model")
        made_with = {**self._http_options}
        profile = choose_profile(made_with.pop("profile", None), "http", url, model)
        backend = self._backend("http", base_url=url, **made_with)
        return ChatCompletionsModel(model, backend=backend, profile=profile, **self._options)

    def _backend(self, kind: str, **made_with: Any) -> Backend:
        key = f"{kind} {made_with.get('base_url', '')}"
        if key not in self._backends:
            self._backends[key] = load_backend(kind, **made_with)
        return self._backends[key]


def _among(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise BadInput(f"{name} is {value!r}: it is {' or '.join(map(repr, allowed))}")
