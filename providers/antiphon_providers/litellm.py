"""LiteLLM's proxy: chunks after the finish, usage beside an empty choice, ids that change from chunk to chunk."""

from antiphon.profile import Profile

from .sources import LITELLM

# A call's thought signature rides in its id, so calls need no more than that.
PROFILE = Profile(
    "litellm",
    reasoning_replay="thinking_blocks",
    passthrough=frozenset({"metadata", "user"}),
    base_urls=("localhost:4000",),
    model_prefixes=("litellm/", "litellm_proxy/"),
    model_words=("claude", "anthropic"),
    evidence={
        "reasoning_replay": "https://docs.litellm.ai/docs/reasoning_content",
        "passthrough": f"{LITELLM}/litellm_proxy/chat/transformation.py",
        "model_words": "https://docs.litellm.ai/docs/reasoning_content",
    },
)
