"""Fireworks: `reasoning_content`; its facts are read off public clients, no stream of it is recorded."""

from antiphon.profile import Profile

from .sources import LITELLM

PROFILE = Profile(
    "fireworks",
    single_leading_system=True,  # many chat templates, as Qwen's, refuse any other
    files=False,
    reasoning_replay="reasoning_content",
    max_tokens_field="max_tokens",
    strict_tools=False,
    passthrough=frozenset({"prompt_cache_key", "top_k", "user"}),
    base_urls=("api.fireworks.ai",),
    model_prefixes=("fireworks_ai/", "fireworks/", "accounts/fireworks/"),
    evidence={
        "single_leading_system": "https://github.com/BerriAI/litellm/pull/39852",
        "files": f"{LITELLM}/fireworks_ai/chat/transformation.py",
        "reasoning_replay": "https://docs.fireworks.ai/fine-tuning/thinking-history",
        "max_tokens_field": f"{LITELLM}/fireworks_ai/chat/transformation.py",
        "strict_tools": f"{LITELLM}/fireworks_ai/chat/transformation.py",
        "passthrough": f"{LITELLM}/fireworks_ai/chat/transformation.py",
    },
)
