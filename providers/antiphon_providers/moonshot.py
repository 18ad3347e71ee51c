"""Moonshot: `reasoning_content`, usage in the choice of the finish chunk; no stream of it is recorded as it came."""

from antiphon.profile import Profile

from .sources import LITELLM, PI

# Thinking is on unless switched off: then each call must come back with its reasoning, and none can be forced.
PROFILE = Profile(
    "moonshot",
    developer_role=False,
    tool_parts=frozenset({"image_url"}),
    reasoning_replay="reasoning_content",
    reasoning_replay_always=True,
    max_tokens_field="max_tokens",
    tool_choice_modes=frozenset({"auto", "none"}),
    strict_tools=False,
    base_urls=("api.moonshot.ai", "api.moonshot.cn"),
    model_prefixes=("kimi-", "moonshot-", "moonshot/", "moonshotai/"),
    evidence={
        "developer_role": PI,
        "tool_parts": "https://github.com/MoonshotAI/kosong/blob/main/src/kosong/chat_provider/kimi.py",
        "reasoning_replay": "https://github.com/n8n-io/n8n/issues/29142",
        "reasoning_replay_always": "https://github.com/continuedev/continue/issues/11600",
        "max_tokens_field": f"{LITELLM}/moonshot/chat/transformation.py",
        "tool_choice_modes": "https://github.com/can1357/oh-my-pi/issues/1077",
        "strict_tools": PI,
    },
)
