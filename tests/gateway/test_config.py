"""Settings: from TOML, the environment and options; and which backend a model's name leads to."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from antiphon.errors import BadInput
from antiphon.gateway import GatewayConfig, create_app, load_config
from antiphon.gateway.config import BackendConfig

from .asking import asked, asking, shape
from .scripted_backend import Scripted

TOML = """
default_model = "qwen3"
api_keys = ["sk-from-the-file"]

[backends.local]
url = "http://127.0.0.1:8000/v1"
profile = "vllm"

[backends.deepseek]
url = "https://api.deepseek.com/v1"
api_key_env = "DEEPSEEK_KEY"
models = ["deepseek-*"]

[aliases]
"gpt-5" = "local/qwen3"

[limits]
streams = 7

[store]
url = "none"
"""


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    path = tmp_path / "antiphon.toml"
    path.write_text(TOML)
    return path


def test_a_file(toml: Path) -> None:
    config = load_config(toml)
    assert list(config.backends) == ["local", "deepseek"]
    assert (config.backends["deepseek"].models, config.backends["local"].profile) == (("deepseek-*",), "vllm")
    assert (config.aliases, config.default_model) == ({"gpt-5": "local/qwen3"}, "qwen3")
    assert (config.limits.streams, config.limits.idle, config.store.url) == (7, 300.0, "none")
    assert [key.get_secret_value() for key in config.api_keys] == ["sk-from-the-file"]
    assert "sk-from-the-file" not in repr(config)


def test_the_environment_counts_before_the_file_and_options_before_both(
    toml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTIPHON_LIMITS__STREAMS", "8")
    monkeypatch.setenv("ANTIPHON_STORE__URL", "memory")
    monkeypatch.setenv("ANTIPHON_API_KEYS", '["sk-from-the-env"]')
    monkeypatch.setenv("ANTIPHON_DEFAULT_MODEL", "other")
    config = load_config(toml, {"default_model": "mine", "store": {"url": "sqlite:///x.db"}})
    assert (config.limits.streams, config.store.url, config.default_model) == (8, "sqlite:///x.db", "mine")
    assert [key.get_secret_value() for key in config.api_keys] == ["sk-from-the-env"]
    assert list(config.backends) == ["local", "deepseek"]


SECRET = "sk-in-a-variable-1"
VARIABLES = [
    ("ANTIPHON_API_KEYS", SECRET, "ANTIPHON_API_KEYS"),
    ("ANTIPHON_HOSTS", f'["{SECRET}"', "ANTIPHON_HOSTS"),
    ("ANTIPHON_STORE", SECRET, "ANTIPHON_STORE"),
    ("ANTIPHON_BACKENDS", f'{{"a": {{"api_key": "{SECRET}"', "ANTIPHON_BACKENDS"),
    ("ANTIPHON_BACKENDS__A__MODELS", SECRET, "ANTIPHON_BACKENDS"),
    ("ANTIPHON_BACKENDS__A__OPTIONS", SECRET, "ANTIPHON_BACKENDS"),
    ("ANTIPHON_BACKENDS__A", SECRET, r"backends\.a"),
    ("ANTIPHON_LIMITS", f'"{SECRET}"', "limits"),
    ("ANTIPHON_LIMITS__STREAMS", SECRET, r"limits\.streams"),
    ("ANTIPHON_LIMITS__STREAM", "5", r"limits\.stream"),
    ("ANTIPHON_LIMIT__STREAMS", "5", "ANTIPHON_LIMIT__STREAMS names no setting"),
]


@pytest.mark.parametrize(("name", "value", "said"), VARIABLES)
def test_variables_that_are_wrong_are_named(name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what they hold: it may be a key."""
    monkeypatch.setenv(name, value)
    with pytest.raises(BadInput, match=said) as raised:
        load_config()
    assert SECRET not in str(raised.value)


TIMES = (
    *(f"limits.{name}" for name in ("body_seconds", "connect", "first_byte", "idle", "total", "keep_alive", "drain")),
    *(f"store.{name}" for name in ("keep_seconds", "timeout", "clean_every", "beat", "lease")),
    "retry.longest_wait",
)
ENDLESS = {"limits.connect", "limits.first_byte", "limits.idle", "limits.total"}


@pytest.mark.parametrize("value", ["inf", "nan", "-inf", "1e300", "-1"])
@pytest.mark.parametrize("name", TIMES)
def test_times_that_no_clock_can_tell(name: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the file and in the environment: they are refused, but for `inf` where no limit is possible."""
    path, (section, key) = tmp_path / "a.toml", name.split(".")
    path.write_text(f"[{section}]\n{key} = {value}\n")
    if value == "inf" and name in ENDLESS:
        assert load_config(path).limits.model_dump()[key] is None
        return
    with pytest.raises(BadInput, match=rf"{section}\.{key}"):
        load_config(path)
    monkeypatch.setenv(f"ANTIPHON_{section}__{key}".upper(), value)
    with pytest.raises(BadInput, match=rf"{section}\.{key}"):
        load_config()


def test_nothing_is_the_replay_backend() -> None:
    config = load_config()
    assert {name: one.kind for name, one in config.named_backends().items()} == {"replay": "replay"}
    assert "url" not in config.store.model_fields_set


DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = [
    *(path.read_text() for path in sorted((DOCS / "deploy").glob("*.toml"))),
    *(
        text
        for name in ("gateway.md", "codex.md")
        for text in re.findall(r"```toml\n(.*?)```", (DOCS / name).read_text(), re.DOTALL)
        if "model_provider" not in text  # which is Codex's own file
    ),
]


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_of_the_documentation(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DEEPSEEK_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.setenv(name, "sk-in-the-environment")
    keys, path = tmp_path / "keys", tmp_path / "a.toml"
    keys.write_text("sk-in-the-file-1234\n")
    path.write_text(
        text.replace("/etc/antiphon/keys", str(keys))
        .replace("postgresql://", "sqlite:///")
        .replace('kind = "litellm"', 'kind = "replay"')
    )
    assert create_app(load_config(path)).state.gateway.config.named_backends()


# --- what is wrong is named, with what was meant -------------------------------------------------------------------

MODELS = {"": GatewayConfig(), "backends.a": BackendConfig(), **{
    name: part for name, part in GatewayConfig() if isinstance(part, BaseModel)
}}  # fmt: skip
SETTINGS = [(table, name) for table, model in MODELS.items() for name in type(model).model_fields]


def dotted(table: str, name: str) -> str:
    return f"{table}.{name}" if table else name


def misspelt(name: str) -> str:
    return name[:1] + name[2:]


def said_of(text: str, path: Path) -> str:
    """Return what is said of a configuration file."""
    path.write_text(text)
    with pytest.raises(BadInput) as raised:
        create_app(load_config(path))
    return str(raised.value)


@pytest.mark.parametrize(("table", "name"), SETTINGS, ids=lambda one: one or "top")
def test_every_setting_that_is_misspelt_is_told_with_the_one_that_is_meant(
    table: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a file, in a variable and in a mapping: which, where it was given, what was meant, and all that is allowed."""
    wrong, right, path = dotted(table, misspelt(name)), dotted(table, name), tmp_path / "a.toml"
    allowed = ", ".join(type(MODELS[table]).model_fields)
    title = f"[{table}]" if table else "The top of a file"
    told = f"{wrong}: there is no such setting; did you mean {right}?"
    in_a_file = said_of(f"[{table}]\n{misspelt(name)} = 1" if table else f"{misspelt(name)} = 1", path)
    assert in_a_file.startswith(f"the configuration {path}: {told}")
    assert in_a_file.endswith(f"{title} takes {allowed}")
    held: Any = {misspelt(name): 1}
    for part in reversed(table.split(".") if table else []):
        held = {part: held}
    with pytest.raises(BadInput, match=re.escape(f"the configuration of the gateway: {told}")):
        create_app(held)
    if name == "page":
        return  # so short a name may be anything
    variable = f"ANTIPHON_{wrong.replace('.', '__')}".upper()
    monkeypatch.setenv(variable, "1")
    meant = right if table else f"ANTIPHON_{name}".upper()
    with pytest.raises(BadInput, match=rf"the environment variable {variable}.*did you mean {re.escape(meant)}"):
        load_config()


# what a newcomer writes -> what is said
SLIPS: dict[str, tuple[str, ...]] = {
    "[limit]\nstreams = 5": ("limit: there is no such setting; did you mean limits?",),
    "[limits]\nstream = 5": ("limits.stream: there is no such setting; did you mean limits.streams?", "[limits] takes"),
    "streams = 5": ("streams is a setting of [limits] and [page]", "the top of a file takes"),
    "port = 80": ("it is an option of the command: --port",),
    "workers = 2": ("it is an option of the command: --workers",),
    'api_key = "sk-not-in-a-list"': ("did you mean api_keys?", "api_key is a setting of [backends.NAME]"),
    'api_keys = "sk-not-in-a-list"': ("api_keys: a list is expected, and text came",),
    '[backends]\nurl = "http://x"': ("backends.url: each backend is a table of its own, such as [backends.local]",),
    '[[backends]]\nurl = "http://x"': ("backends: each backend is a table of its own, such as [backends.local]",),
    '[backend.a]\nurl = "http://x"': ("did you mean backends?",),
    '[backends.a]\nbase_url = "http://x"': ("did you mean backends.a.url?",),
    '[backends.a]\nurl = "http://x"\n[store]\nstrict = true': (
        "strict stands before the first [table] of the file",
        "store.strict",
    ),
    '[backends.a]\nurl = "127.0.0.1:8000/v1"': ("backends.a.url begins with neither http:// nor https://",),
    '[backends.a]\nkind = "replay"\nurl = "http://x"': ("a backend of kind 'replay' takes no url: leave it out",),
    '[backends.a]\nkind = "htp"': ("backends.a.kind: no backend is called 'htp'; did you mean 'http'? Known are:",),
    '[backends.a]\nurl = "http://x"\nprofile = "olama"': (
        "backends.a.profile: no profile is called 'olama'; did you mean 'ollama'? Known are:",
    ),
    '[backends.a]\nurl = "http://x"\noptions = {timeot = 3}': ("backends.a:", "'timeot'; did you mean 'timeout'?"),
    '[backends.a]\nurl = "http://x"\nreasoning = "sumary"': ("backends.a.reasoning: it should be 'summary' or 'text'",),
    '[backends.a]\nurl = "http://x"\napi_key_env = "NOT_SET_ANYWHERE"': (
        "backends.a.api_key_env: the environment has no NOT_SET_ANYWHERE: set it, as with `export NOT_SET_ANYWHERE=…`",
    ),
    '[backends.a]\nurl = "http://x"\napi_key_env = "HOM"': ("the environment has no HOM; did you mean HOME?",),
    '[backends.a]\nurl = "http://x"\napi_key_env = "sk-not-in-a-list"': (
        "backends.a.api_key_env takes the name of an environment variable",
    ),
    'default_backend = "lokal"\n[backends.local]\nurl = "http://x"': (
        "no backend is called so; did you mean 'local'?",
    ),
    '[backends.a]\nurl = "http://x"\nmodels = ["q"]\n[aliases]\nb = "c"': (
        "aliases.b: no backend answers to 'c': say which is meant, as in a/MODEL, or name a default_backend",
    ),
    "[limits]\nstreams = 0\nidle = -1": (
        "2 settings are wrong:\n- ",
        "limits.streams: it should be greater than 0",
        "limits.idle: it should be greater than 0",
    ),
    '[limits]\nstreams = "many"': ("limits.streams: a whole number is expected, and text came",),
    "limits = 3": ("limits: a table is expected, and a number came",),
    "[store]\nbeat = 20": ("store: lease is less than three times beat",),
    '[store]\nurl = "mongodb://x/y"': ("store.url: no database is called 'mongodb'", "sqlite:///antiphon.db"),
    '[store]\nurl = "antiphon.db"': ("store.url is no database URL", "sqlite:///antiphon.db"),
    'api_keys = ["sk-good-enough", "short"]': (
        "key 2 of --api-key or api_keys: the API key has 5 characters, and 8 are the least",
    ),
    'api_keys = ["sk-höchst-geheim"]': ("the API key has characters that are not ASCII",),
    'api_keys = ["sk-not in one word"]': ("the API key has blanks in it",),
}


@pytest.mark.parametrize("text", SLIPS)
def test_a_slip_is_told_with_the_way_out(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one message, which shows no value that may be a key and says nothing of Python's classes."""
    monkeypatch.setenv("HOME", str(tmp_path))
    said = said_of(text, tmp_path / "a.toml")
    assert [piece for piece in SLIPS[text] if piece not in said] == []
    hidden = ("sk-", "short", "geheim", "one word", "`Profile`", "`Backend`", "pydantic", "Input should")
    assert [word for word in hidden if word in said] == []


def test_a_key_of_a_file_is_told_by_its_line(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("# callers\nanna: sk-good-enough\n\nbert: short\n")
    with pytest.raises(BadInput, match=f"api_key_file {keys}, line 4: the API key has 5 characters"):
        create_app({"api_key_file": str(keys)})


# variable -> the one that is meant
MEANT = {
    "ANTIPHON_STORE_URL": "ANTIPHON_STORE__URL",
    "ANTIPHON_LIMITS_STREAMS": "ANTIPHON_LIMITS__STREAMS",
    "ANTIPHON_LIMIT__STREAMS": "ANTIPHON_LIMITS__STREAMS",
    "ANTIPHON_DEFAULT_MODLE": "ANTIPHON_DEFAULT_MODEL",
}


@pytest.mark.parametrize("name", MEANT)
def test_variables_that_would_do_nothing_are_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    with pytest.raises(BadInput, match=f"{name} names no setting; did you mean {MEANT[name]}?"):
        load_config()


# The last ones are those that Kubernetes makes for services of that name.
OTHERS = [
    *("ANTIPHON_API_KEY", "ANTIPHON_HOME", "ANTIPHON_HOST", "ANTIPHON_LEAK_STREAMS", "ANTIPHON_PROFILE"),
    *("ANTIPHON_PORT", "ANTIPHON_PORT_8080_TCP_ADDR", "ANTIPHON_SERVICE_HOST", "ANTIPHON_STORE_SERVICE_PORT"),
    *("ANTIPHON_BACKEND_PORT", "ANTIPHON_STORE_PORT", "ANTIPHON_PAGE_PORT"),
]


@pytest.mark.parametrize("name", OTHERS)
def test_variables_that_are_for_something_else_are_let_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    assert load_config() == GatewayConfig()


@pytest.mark.parametrize(
    ("url", "package", "said"),
    [
        ("postgresql://db/x", "asyncpg", r"postgresql\+asyncpg needs the package asyncpg.*: pip install asyncpg"),
        ("sqlite:///x.db", "aiosqlite", r"sqlite\+aiosqlite needs the package aiosqlite.*: pip install aiosqlite"),
        ("postgresql+nopg://db/x", "nopg", "no database is called 'postgresql\\+nopg'"),
        ("mysql://db/x", "MySQLdb", "mysql is read by the package MySQLdb, which is not installed; the store may be"),
    ],
)
def test_a_database_whose_driver_is_missing(url: str, package: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(BadInput, match=f"store.url: {said}"):
        create_app({"store": {"url": url}})


WRONG: list[tuple[Any, str]] = [
    ({"backends": {"a": {"kind": "http"}}}, r"backends\.a\.url is missing"),
    ({"backends": {"a": {"url": "http://x", "api_key_file": "/no/such/file"}}}, "api_key_file"),
    ({"backends": {"a": {"url": "http://x", "options": {"colour": 1}}}}, "colour"),
]


@pytest.mark.parametrize(("given", "said"), WRONG)
def test_settings_that_are_wrong_are_named(given: Any, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        create_app(given)


@pytest.mark.parametrize("text", ["x = ", "\x00", None])
def test_files_that_are_none(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadInput, match=r"a\.toml"):
        load_config(path)


async def test_names_lead_to_backends(scripted: Scripted) -> None:
    config = {
        "backends": {
            "one": {"url": scripted.url, "headers": {"X-Is": "one"}},
            "two": {"url": scripted.url, "headers": {"X-Is": "two"}, "models": ["text", "his*"]},
        },
        "aliases": {"gpt-5": "one/history", "quick": "text"},
        "default_model": "refusal",
    }
    asked_for = ["gpt-5", "quick", "text", "one/text", "two/text", "history", "length", "scripted/text", None]
    async with asking(config) as client:
        answers = [await asked(client, name, store=False) for name in asked_for]  # type: ignore[arg-type]  # null is allowed
        models = [one["id"] for one in (await client.get("/v1/models")).json()["data"]]
        one = (await client.get("/v1/models/two")).status_code, (await client.get("/v1/models/gpt-5")).json()
    assert [one.status_code for one in answers] == [200] * len(asked_for)
    assert [one.json()["model"] for one in answers] == [*asked_for[:-1], "refusal"]
    posts = [(one.headers["x-is"], one.body["model"]) for one in scripted.server.requests if one.method == "POST"]
    assert posts == [
        ("one", "history"),
        ("two", "text"),
        ("two", "text"),
        ("one", "text"),
        ("two", "text"),
        ("two", "history"),
        ("one", "length"),
        ("one", "scripted/text"),
        ("one", "refusal"),
    ]
    assert models[:2] == ["gpt-5", "quick"]
    assert {"length", "text", "history"} <= set(models)
    assert one[0] == 404
    assert (one[1]["id"], one[1]["object"]) == ("gpt-5", "model")


async def test_a_name_that_no_backend_has(scripted: Scripted) -> None:
    async with asking({"backends": {"one": {"url": scripted.url, "models": ["text"]}}}) as client:
        answer = await asked(client, "other")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (404, "model_not_found", "model")
    assert scripted.asked == []


async def test_models_of_a_backend_that_is_away_are_left_out(scripted: Scripted) -> None:
    config = {
        "backends": {
            "here": {"url": scripted.url},
            "away": {"url": "http://127.0.0.1:9/v1", "models": ["a-model", "b-*"]},
        }
    }
    async with asking(config) as client:
        models = [one["id"] for one in (await client.get("/v1/models")).json()["data"]]
    assert {"text", "a-model"} <= set(models)


async def test_without_a_backend_it_serves_the_replay_backend() -> None:
    async with asking() as client:
        answer = await asked(client, "anything")
        models = [one["id"] for one in (await client.get("/v1/models")).json()["data"]]
    assert shape(answer.json())["output"] == [["message", "You said: Hi"]]
    assert {"echo", "replay/reasoning"} <= set(models)


@pytest.mark.parametrize("package", ["starlette", "sqlalchemy"])
def test_without_the_extra_the_import_says_what_to_install(package: str) -> None:
    code = f"import sys\nsys.modules[{package!r}] = None\nimport antiphon.gateway"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = f"ExtraMissing: the gateway needs the package {package}: pip install 'antiphon[gateway]'"
    assert ran.stderr.rstrip().endswith(said)
