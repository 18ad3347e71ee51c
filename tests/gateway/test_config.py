"""Settings: from TOML, the environment and options; and which backend a model's name leads to."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import BadInput
from antiphon.gateway import create_app, load_config

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


WRONG: list[tuple[Any, str]] = [
    ({"backend": {}}, "backend: Extra inputs"),
    ({"limits": {"streams": 0}}, r"limits\.streams"),
    ({"limits": {"idle": "long"}}, r"limits\.idle"),
    ({"backends": {"a": {"kind": "http"}}}, r"backends\.a\.url is missing"),
    ({"backends": {"a": {"kind": "telepathy"}}}, "no backend is called 'telepathy'"),
    ({"backends": {"a": {"url": "http://x", "profile": "nobody"}}}, "nobody"),
    ({"backends": {"a": {"url": "http://x", "api_key_env": "NOT_SET_ANYWHERE"}}}, "NOT_SET_ANYWHERE"),
    ({"backends": {"a": {"url": "http://x", "api_key_file": "/no/such/file"}}}, "api_key_file"),
    ({"backends": {"a": {"url": "http://x"}}, "default_backend": "b"}, "default_backend is 'b'"),
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
