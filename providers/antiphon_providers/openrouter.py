"""OpenRouter: reasoning twice, signed and encrypted `reasoning_details`, a usage chunk that repeats the finish, errors."""

from antiphon.profile import Profile

from .sources import PI

# Which upstream answers is known only afterwards; some (Kimi, DeepSeek) refuse a call without its reasoning.
PROFILE = Profile(
    "openrouter",
    reasoning_fields=("reasoning", "reasoning_content", "reasoning_text"),
    developer_role=False,  # only Anthropic's and OpenAI's models take it
    reasoning_replay="reasoning_details",
    reasoning_replay_always=True,
    effort_field="reasoning",
    effort_levels=("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    passthrough=frozenset({"metadata", "top_k", "user"}),
    base_urls=("openrouter.ai",),
    model_prefixes=("openrouter/",),
    evidence={
        "reasoning_fields": "chat/openrouter/pydantic-ai--test-openrouter-test-openrouter-streaming-reasoning.jsonl",
        "developer_role": PI,
        "reasoning_replay": "https://openrouter.ai/docs/guides/best-practices/reasoning-tokens",
        "reasoning_replay_always": "https://github.com/OnesoftQwQ/opencode-go-copilot/issues/1",
        "effort_field": "https://openrouter.ai/docs/guides/best-practices/reasoning-tokens",
        "effort_levels": "https://openrouter.ai/docs/client-sdks/typescript/models/chatrequestreasoningeffort.md",
        "passthrough": "https://openrouter.ai/docs/api/reference/parameters",
    },
)
