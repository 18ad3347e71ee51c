"""What the gateway is told: backends, routing, keys, limits, the store. From TOML, the environment, and options.

What comes later counts more: defaults, the TOML file, environment variables (`ANTIPHON_STORE__URL=…`), options.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from antiphon.errors import BadInput
from antiphon.near import nearest
from antiphon.variable import key_in

from .unfit import OPTIONS, Place, holds, told, variable_of, variables

MEMORY = "memory"  # a store that ends with the process
NO_STORE = "none"
PREFIX, INNER = "ANTIPHON_", "__"  # of environment variables: before each name, and between the parts of one
ALONE = ("api_key", *OPTIONS)  # of variables that are no settings, though they look like some
WHOLE = "the configuration of the gateway"
LONGEST = 3e9  # seconds: no clock of a database or an event loop goes much further
Seconds = Annotated[float, Field(gt=0, le=LONGEST)]


def _endless(given: Any) -> Any:
    """Return None for `inf`, which is how TOML can say that there is no limit: it has no null."""
    return None if isinstance(given, float | str) and str(given).strip().lower() in ("inf", "+inf") else given


SecondsOrNone = Annotated[Seconds | None, BeforeValidator(_endless)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BackendConfig(_Part):
    """One backend. `kind`: "http", "openai_sdk", "litellm", "any_llm", "replay", or another one that is installed.

    `models`: the names that it answers to, with `*`; none: it is asked for all that no other has. `pass_caller_key`:
    the key that a caller sends goes to the backend instead of ours. `options`: what else the kind is made with.
    `count_tokens`: how the tokens of a request are counted: by an endpoint of the server's own, where its profile has
    one, by asking the model for a few tokens, which reports them and costs the prompt, or not at all.
    """

    kind: str = "http"
    url: str | None = None
    api_key: SecretStr | None = None
    api_key_env: str | None = None
    api_key_file: Path | None = None
    profile: str | None = None
    models: tuple[str, ...] = ()
    headers: dict[str, str] = Field(default_factory=dict)
    options: dict[str, Any] = Field(default_factory=dict)
    reasoning: Literal["summary", "text"] = "summary"
    pass_caller_key: bool = False
    count_tokens: Literal["endpoint", "ask", "none"] | None = None


class Limits(_Part):
    """How much a caller may ask for. Times are seconds; None, and `inf` of those that a backend may take, is without limit.

    `body_bytes`: of a request, unpacked; `body_seconds`: until it is there. `streams`: responses that are made at the
    same time, and streams that are followed; `background`: responses that are made in the background. `connect`, `first_byte`, `idle`, `total`: what a backend may take. `events`: of one response.
    `keep_alive`: silence after which a comment is sent, and after which a stream begins although the backend has said
    nothing. `buffer_bytes`: what a slow reader may be behind before the backend is no longer read. `history_items`: of
    a request, and of what it goes on from. `drain`: what streams get when the process is told to end.
    """

    body_bytes: int = Field(default=64 * 1024 * 1024, gt=0)
    body_seconds: Seconds = 60.0
    streams: int = Field(default=1000, gt=0)
    background: int = Field(default=100, gt=0)
    connect: SecondsOrNone = 10.0
    first_byte: SecondsOrNone = 600.0
    idle: SecondsOrNone = 300.0
    total: SecondsOrNone = 3600.0
    events: int = Field(default=1_000_000, gt=0)
    keep_alive: Seconds = 15.0
    buffer_bytes: int = Field(default=64 * 1024, gt=0)
    history_items: int = Field(default=10_000, gt=0)
    drain: Seconds = 30.0


class RetryConfig(_Part):
    """When a request is sent again, before any of its events was handed out: how often, and the longest wait."""

    attempts: int = Field(default=2, ge=0)
    longest_wait: float = Field(default=5.0, ge=0, le=LONGEST)


class StoreConfig(_Part):
    """Where finished responses are kept. `url`: an SQLAlchemy URL, "memory", or "none".

    `keep_seconds`: after which they are deleted, unless a later one builds on them. `most_responses`: beyond which the
    oldest are; in memory never more than a thousand. `timeout`: of one operation. `beat`: after which a process says
    again that it makes its background responses, and asks which are cancelled; `lease`: after which they are lost
    where it does not.
    """

    url: str = MEMORY
    keep_seconds: Seconds = 30 * 24 * 3600.0
    most_responses: int = Field(default=100_000, gt=0)
    timeout: Seconds = 5.0
    clean_every: Seconds = 600.0
    beat: Seconds = 1.0
    lease: float = Field(default=30.0, ge=1, le=LONGEST)

    @model_validator(mode="after")
    def _lasting(self) -> StoreConfig:
        if self.lease < 3 * self.beat:
            raise ValueError("lease is less than three times beat: one that is late would lose what is made")
        return self


class PageConfig(_Part):
    """The page at `/`: off, or the recent streams as pictures; `content`: with what was said in them."""

    enabled: bool = False
    content: bool = False
    streams: int = Field(default=20, gt=0)


class GatewayConfig(_Part):
    """All that the gateway is told. Without a backend it serves the embedded replay backend.

    `aliases`: a model name that callers use -> `backend/model`, or a model. `default_model`: for requests that name
    none. `api_keys`: those that callers may use; none: everybody may call. `strict`: what cannot be carried to the
    backend is refused instead of being warned of. `hosts`: the names by which the gateway may be called, `*` for all.
    """

    backends: dict[str, BackendConfig] = Field(default_factory=dict)
    default_backend: str | None = None
    default_model: str | None = None
    aliases: dict[str, str] = Field(default_factory=dict)
    api_keys: tuple[SecretStr, ...] = ()
    api_key_file: Path | None = None
    hosts: tuple[str, ...] = ("*",)
    strict: bool = False
    done_marker: bool = False
    limits: Limits = Limits()
    retry: RetryConfig = RetryConfig()
    store: StoreConfig = StoreConfig()
    page: PageConfig = PageConfig()

    def named_backends(self) -> dict[str, BackendConfig]:
        """Return the backends by name: the replay backend where none is configured."""
        return self.backends or {"replay": BackendConfig(kind="replay")}


def make_config(given: GatewayConfig | Mapping[str, Any] | None = None) -> GatewayConfig:
    """Return the configuration that `given` describes. Raises BadInput, which names each setting that is wrong."""
    if isinstance(given, GatewayConfig):
        return given
    try:
        return GatewayConfig.model_validate(dict(given or {}))
    except ValidationError as problem:
        raise BadInput(told(problem, GatewayConfig, lambda place: WHOLE)) from None


def load_config(path: str | Path | None = None, options: Mapping[str, Any] | None = None) -> GatewayConfig:
    """Return the configuration in the TOML file at `path`, the environment and `options`.

    Raises BadInput where the file cannot be read, or a setting or a variable is wrong.
    """
    held = _read(Path(path)) if path is not None else {}
    _check_names()

    def whence(place: Place) -> str:
        if holds(options or {}, place):
            return WHOLE
        variable, is_whole = variable_of(place, PREFIX, INNER)
        if variable and (is_whole or not holds(held, place)):
            return f"the environment variable {variable}"
        return f"the configuration {path}" if holds(held, place) else WHOLE

    try:
        settings = _settings(held)(**(options or {}))
        return GatewayConfig.model_validate(settings.model_dump(exclude_unset=True))
    except ValidationError as problem:
        raise BadInput(told(problem, GatewayConfig, whence)) from None
    except SettingsError as problem:
        raise BadInput(_unread(str(problem))) from None


def secret_of(config: BackendConfig, name: str) -> str | None:
    """Return the key of a backend: given, in a file, or in an environment variable. Raises BadInput without it."""
    if config.api_key is not None:
        return config.api_key.get_secret_value()
    if config.api_key_file is not None:
        return read_text(config.api_key_file, f"backends.{name}.api_key_file").strip()
    if config.api_key_env is not None:
        return key_in(config.api_key_env, f"backends.{name}.api_key_env", "api_key, or a file for api_key_file")
    return None


def read_text(path: Path, setting: str) -> str:
    """Return what is in the file that `setting` names. Raises BadInput where it cannot be read."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else problem
        raise BadInput(f"{setting}: {path} cannot be read: {reason}") from None


def _check_names() -> None:
    """Raise BadInput for a variable that is meant as a setting, and names none: it would do nothing, in silence."""
    for name in os.environ:
        part = name.removeprefix(PREFIX).partition(INNER)[0].lower()
        if not name.startswith(PREFIX) or part in (*ALONE, *GatewayConfig.model_fields):
            continue
        meant = _variable_like(name)
        if meant is not None or INNER in name:
            hint = f"did you mean {meant}? " if meant else ""
            known = ", ".join(f"{PREFIX}{one.upper()}" for one in GatewayConfig.model_fields)
            raise BadInput(
                f"the environment variable {name} names no setting; {hint}Those that there are begin with {known}"
            )


def _variable_like(name: str) -> str | None:
    """Return the variable that is meant by one that names no setting: misspelt, or with one underscore for two."""
    single = {one.replace(INNER, "_"): one for one in variables(GatewayConfig, PREFIX, INNER)}
    close = nearest(name.replace(INNER, "_").removeprefix(PREFIX), (one.removeprefix(PREFIX) for one in single), 0.88)
    return None if close is None else single[PREFIX + close]


def _unread(problem: str) -> str:
    """Return what is wrong with a variable that cannot be read, without its value: it may be a key."""
    found = re.search(r'field "(\w+)"', problem)
    name = PREFIX + (found[1].upper() if found else "…")
    return (
        f"the environment variable {name}, or one that begins with {name}{INNER}, is no JSON, as lists and tables have "
        f"""to be: such as {PREFIX}API_KEYS='["KEY"]', {PREFIX}ALIASES='{{"NAME": "MODEL"}}'; a value inside a table has """
        f"a variable of its own, such as {PREFIX}LIMITS{INNER}STREAMS=200"
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path, "the configuration"))
    except tomllib.TOMLDecodeError as problem:
        raise BadInput(f"the configuration {path} is no TOML: {problem}") from None


def _settings(held: Mapping[str, Any]) -> type[BaseSettings]:
    """Return the settings class that reads `held` below the environment."""

    class Settings(BaseSettings, GatewayConfig):  # pyright: ignore[reportIncompatibleVariableOverride]  # it is set here
        model_config = SettingsConfigDict(
            env_prefix=PREFIX,
            env_nested_delimiter=INNER,
            extra="forbid",
            frozen=True,
        )

        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return init_settings, env_settings, _File(settings_cls, held)

    return Settings


class _File(PydanticBaseSettingsSource):
    """The TOML file as a source of settings."""

    def __init__(self, settings_cls: type[BaseSettings], held: Mapping[str, Any]) -> None:
        super().__init__(settings_cls)
        self._held = dict(held)

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        return self._held.get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        return self._held
