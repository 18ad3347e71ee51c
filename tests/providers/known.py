"""The profiles that come with the distribution, and the folders of recordings that each is run over."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import antiphon_providers
from antiphon import Profile

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

MODULES: dict[str, ModuleType] = {
    info.name: module
    for info in iter_modules(antiphon_providers.__path__)
    if hasattr(module := import_module(f"antiphon_providers.{info.name}"), "PROFILE")
}
PROFILES: dict[str, Profile] = {name: module.PROFILE for name, module in MODULES.items()}

# profile -> folders of recorded streams
RECORDED: dict[str, tuple[str, ...]] = {
    "azure": ("azure-ai-foundry", "azure-openai"),
    "bedrock": ("bedrock-mantle", "bedrock-openai-compat"),
    "cerebras": ("cerebras",),
    "cloudflare": ("cloudflare",),
    "copilot": ("github-copilot",),
    "databricks": ("databricks",),
    "deepseek": ("deepseek",),
    "gemini": ("gemini-openai-compat",),
    "groq": ("groq",),
    "huggingface": ("huggingface-router",),
    "litellm": ("litellm-proxy",),
    "llamacpp": ("llama.cpp",),
    "mistral": ("mistral",),
    "ollama": ("ollama", "ollama-cloud"),
    "openai": ("openai",),
    "openrouter": ("openrouter",),
    "perplexity": ("perplexity",),
    "qwen": ("alibaba",),
    "sglang": ("sglang",),
    "snowflake": ("snowflake",),
    "together": ("together",),
    "vllm": ("vllm",),
    "xai": ("xai",),
    "zai": ("zai",),
}
