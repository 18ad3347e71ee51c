"""LiteLLM's proxy: chunks after the finish, usage beside an empty choice, ids that change from chunk to chunk."""

from antiphon.profile import Profile

from .sources import LITELLM

PROFILE = Profile(
    "litellm",
    reasoning_replay="thinking_blocks",
    thought_signatures=True,
    passthrough=frozenset({"metadata", "user"}),
    base_urls=("localhost:4000",),
    model_prefixes=("litellm/", "litellm_proxy/"),
    evidence={
        "reasoning_replay": "https://docs.litellm.ai/docs/reasoning_content",
        "thought_signatures": "https://github.com/BerriAI/litellm/blob/main/litellm/litellm_core_utils/prompt_templates/factory.py",
        "passthrough": f"{LITELLM}/litellm_proxy/chat/transformation.py",
    },
)
