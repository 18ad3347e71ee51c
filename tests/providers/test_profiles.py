"""Profiles: they load by name, are found by address and model, and say where each fact was seen."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from antiphon import Profile, ProfileNotFound, Quirk, load_profile
from antiphon.profile import DEFAULT, REASONING_FIELDS, RESPONSE_FORMATS, TOOL_CHOICE_MODES, find_profile

from .known import CORPUS, MODULES, PROFILES, RECORDED
from .table import PAGE, page

NO_FACTS = {"name", "evidence", "base_urls", "model_prefixes"}
FACTS = [one.name for one in fields(Profile) if one.name not in NO_FACTS]
EVIDENCE = [pytest.param(name, fact, id=f"{name}-{fact}") for name, one in PROFILES.items() for fact in one.evidence]
WANTED = (
    "openai azure litellm any_llm deepseek gemini groq mistral openrouter xai together fireworks perplexity cerebras "
    "moonshot qwen zai ollama vllm sglang llamacpp lmstudio huggingface databricks bedrock snowflake copilot cloudflare"
)


def test_there_is_one_module_a_provider() -> None:
    assert set(PROFILES) == set(WANTED.split())
    assert {name: profile.name for name, profile in PROFILES.items()} == {name: name for name in PROFILES}


def test_entry_points_name_each_profile() -> None:
    points = {one.name: one.value for one in entry_points(group="antiphon.providers")}
    if not points:
        pytest.skip("the installed distribution has no entry points for profiles")
    ours = {name: value for name, value in points.items() if value.startswith("antiphon_providers.")}
    expected = {name: f"antiphon_providers.{name}:PROFILE" for name in PROFILES}
    assert ours == {**expected, "dashscope": "antiphon_providers.qwen:PROFILE"}
    assert load_profile("dashscope") is load_profile("qwen") is PROFILES["qwen"]


def test_the_default_needs_no_installed_profile() -> None:
    assert load_profile("default") is DEFAULT
    with pytest.raises(ProfileNotFound, match=r"no profile is called 'no-such'; known are: .*default"):
        load_profile("no-such")


def test_a_profile_is_a_value() -> None:
    one = PROFILES["vllm"]
    assert one == replace(one, evidence={})
    assert hash(one) == hash(replace(one, evidence={}))
    assert "evidence" not in repr(one)
    with pytest.raises(AttributeError):
        one.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_a_fact_that_differs_has_evidence_and_none_is_evidence_of_nothing(name: str) -> None:
    profile = PROFILES[name]
    differing = {fact for fact in FACTS if getattr(profile, fact) != getattr(DEFAULT, fact)}
    assert differing <= set(profile.evidence) <= set(FACTS)


@pytest.mark.parametrize(("name", "fact"), EVIDENCE)
def test_evidence_is_a_recording_or_a_public_page(name: str, fact: str) -> None:
    source = PROFILES[name].evidence[fact]
    if source.startswith("https://"):
        return
    assert source.startswith(("chat/", "wire/"))
    if not CORPUS.is_dir():
        pytest.skip("the recordings do not lie beside the checkout")
    assert (CORPUS / source).is_file()


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_facts_are_of_their_kinds(name: str) -> None:
    profile = PROFILES[name]
    assert profile.response_formats <= RESPONSE_FORMATS
    assert profile.tool_choice_modes <= TOOL_CHOICE_MODES
    assert set(profile.reasoning_fields) == set(
        REASONING_FIELDS
    )  # an order of its own; others would cost the quick path
    assert all(isinstance(quirk, Quirk) for quirk in profile.quirks)
    assert all(start == start.lower() for start in (*profile.base_urls, *profile.model_prefixes))


def test_addresses_and_prefixes_differ() -> None:
    places = [place for profile in PROFILES.values() for place in profile.base_urls]
    prefixes = [start for profile in PROFILES.values() for start in profile.model_prefixes]
    assert len(places) == len(set(places))
    assert len(prefixes) == len(set(prefixes))


# address -> the profile that is found, None for none
ADDRESSES: dict[str, str | None] = {
    "https://api.openai.com/v1": "openai",
    "https://eu.api.openai.com/v1/": "openai",
    "https://api.openai.com:443/v1": "openai",
    "https://API.DeepSeek.com": "deepseek",
    "https://api.deepseek.com/beta?x=1": "deepseek",
    "https://mine.openai.azure.com/openai/deployments/gpt/chat/completions": "azure",
    "https://generativelanguage.googleapis.com/v1beta/openai/": "gemini",
    "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/openapi": "gemini",
    "https://api.groq.com/openai/v1": "groq",
    "https://openrouter.ai/api/v1": "openrouter",
    "https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1": "bedrock",
    "https://bedrock-mantle.us-east-1.api.aws/v1": "bedrock",
    "https://acme.snowflakecomputing.com/api/v2/cortex/v1": "snowflake",
    "https://api.cloudflare.com/client/v4/accounts/0123/ai/v1": "cloudflare",
    "https://api.cloudflare.com/client/v4/zones": None,
    "http://127.0.0.1:11434/v1": "ollama",
    "http://[::1]:11434/v1": "ollama",
    "http://0.0.0.0:1234/v1": "lmstudio",
    "http://gpu-7:11434/v1": "ollama",
    "localhost:4000": "litellm",
    "http://user:secret@localhost:4000/v1": "litellm",
    "http://127.0.0.1:8000/v1": None,
    "https://api.openai.com.evil.example/v1": None,
    "https://notapi.openai.comx/v1": None,
    "https://example.com/api.openai.com": None,
    "": None,
}


def found(**given: str) -> str | None:
    profile = find_profile(**given, profiles=PROFILES.values())
    return profile.name if profile else None


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_profile_is_found_by_address(address: str) -> None:
    assert found(base_url=address) == ADDRESSES[address]


MODELS: dict[str, str | None] = {
    "gpt-5.4-mini": "openai",
    "o4-mini": "openai",
    "deepseek-reasoner": "deepseek",
    "Gemini-3-Flash": "gemini",
    "models/gemini-2.5-pro": "gemini",
    "grok-4": "xai",
    "magistral-medium-latest": "mistral",
    "mistralai/Mistral-Small-3.2": "mistral",
    "kimi-k2.6": "moonshot",
    "qwen3-max": "qwen",
    "Qwen/Qwen3-8B": "qwen",
    "glm-4.7": "zai",
    "sonar-pro": "perplexity",
    "groq/llama-3.3-70b-versatile": "groq",
    "openrouter/deepseek/deepseek-chat": "openrouter",
    "bedrock/openai.gpt-oss-20b-1:0": "bedrock",
    "@cf/meta/llama-3.3-70b-instruct-fp8-fast": "cloudflare",
    "databricks-claude-sonnet-4-5": "databricks",
    "openai/gpt-oss-120b": None,
    "llama-3.3-70b": None,
    "": None,
}


@pytest.mark.parametrize("model", MODELS)
def test_a_profile_is_found_by_model(model: str) -> None:
    assert found(model=model) == MODELS[model]


def test_the_server_counts_before_the_model_and_the_longest_match_wins() -> None:
    assert found(base_url="https://openrouter.ai/api/v1", model="deepseek-chat") == "openrouter"
    assert found(base_url="http://10.0.0.1:8000/v1", model="deepseek-chat") == "deepseek"
    short, long = Profile("short", model_prefixes=("a-",)), Profile("long", model_prefixes=("a-b-",))
    assert find_profile(model="a-b-c", profiles=(short, long)) == long
    assert find_profile(model="a-b-c", profiles=(long, short)) == long
    wide, near = Profile("wide", base_urls=("*.example.com",)), Profile("near", base_urls=("eu.example.com/ai",))
    assert find_profile(base_url="https://eu.example.com/ai/v1", profiles=(wide, near)) == near
    assert find_profile(base_url="https://eu.example.com/aix/v1", profiles=(wide, near)) == wide


THIRD_PARTY = """
from antiphon import BadInput, load_profile
from antiphon.profile import find_profile
assert load_profile("acme").name == "acme"
try:
    load_profile("odd")
except BadInput as error:
    assert str(error) == "entry point 'odd' of 'antiphon.providers' is a str, not a Profile", error
else:
    raise AssertionError
"""
FOUND = """
from antiphon.profile import find_profile
assert find_profile(base_url="https://api.acme.example/v1").name == "acme"
assert find_profile(base_url="https://other.example/v1") is None
"""
OPENS_NONE = """
from antiphon.models.native_input import may_open
assert not may_open("https://api.acme.example/v1")
assert not may_open("https://api.openai.com/v1")
assert may_open("https://other.example/v1")
"""


def run(path: Path, program: str) -> None:
    subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": str(path)}, check=True, timeout=60)


def install(path: Path, *points: str) -> None:
    """Lay a distribution with those entry points into `path`."""
    info = path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(("[antiphon.providers]", *points)))
    acme = 'Profile("acme", base_urls=("api.acme.example",), opens_seals=False)'
    module = f'from antiphon import Profile\nACME = {acme}\nODD = "odd"\n'
    (path / "acme.py").write_text(module)


def test_another_distribution_adds_profiles(tmp_path: Path) -> None:
    install(tmp_path, "acme = acme:ACME", "odd = acme:ODD")
    run(tmp_path, THIRD_PARTY)


def test_a_profile_of_another_distribution_is_found(tmp_path: Path) -> None:
    install(tmp_path, "acme = acme:ACME")
    run(tmp_path, FOUND)


def test_a_profile_of_another_distribution_says_that_its_servers_open_no_seal(tmp_path: Path) -> None:
    install(tmp_path, "acme = acme:ACME")
    run(tmp_path, OPENS_NONE)


def test_importing_the_profiles_reads_no_metadata() -> None:
    program = "import sys, antiphon.profile, antiphon_providers.vllm; assert 'importlib.metadata' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_the_page_of_the_providers_is_current() -> None:
    if not PAGE.parent.is_dir():
        pytest.skip("the docs are not beside the tests")
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.providers.table"


def test_each_module_says_what_its_streams_do() -> None:
    first: dict[str, Any] = {name: (module.__doc__ or "").splitlines()[0] for name, module in MODULES.items()}
    assert [name for name, line in first.items() if not line.endswith(".") or ": " not in line] == []


def test_each_folder_of_recordings_is_of_a_profile() -> None:
    assert set(RECORDED) <= set(PROFILES)
