"""Z.ai: `reasoning_content`, then text and calls in one message, calls whole in one chunk, usage on the finish chunk."""

from antiphon.profile import Profile

from .sources import LITELLM, PI

# Reasoning comes back with the results of tools; that of earlier turns only where `clear_thinking` is switched off.
PROFILE = Profile(
    "zai",
    developer_role=False,
    reasoning_replay="reasoning_content",
    effort_field="none",
    max_tokens_field="max_tokens",
    response_formats=frozenset({"text", "json_object"}),
    parallel_tool_calls=False,
    tool_choice_modes=frozenset({"auto"}),
    base_urls=("api.z.ai", "open.bigmodel.cn"),
    model_prefixes=("glm-", "zai/", "z-ai/", "zai-org/"),
    evidence={
        "developer_role": "https://github.com/vastsa/PI-Desktop/issues/30",
        "reasoning_replay": "https://docs.z.ai/guides/capabilities/thinking-mode",
        "effort_field": PI,
        "max_tokens_field": PI,
        "response_formats": f"{LITELLM}/zai/chat/transformation.py",
        "parallel_tool_calls": f"{LITELLM}/zai/chat/transformation.py",
        "tool_choice_modes": "https://docs.z.ai/api-reference/llm/chat-completion",
    },
)
