"""DeepSeek: `reasoning_content` before text and calls, usage on the finish chunk, arguments cut by the token limit."""

from antiphon.profile import Profile

from .sources import ANY_LLM

# The reasoning of a turn that called a tool must come back in all later requests (400 "must be passed back"); that of
# other turns is ignored. Thinking is on unless switched off, and then no call can be forced.
PROFILE = Profile(
    "deepseek",
    developer_role=False,
    max_tokens_field="max_tokens",
    reasoning_replay="reasoning_content",
    reasoning_replay_always=True,
    effort_levels=("low", "medium", "high", "xhigh", "max"),
    response_formats=frozenset({"text", "json_object"}),
    parallel_tool_calls=False,
    tool_choice_modes=frozenset({"auto", "none"}),
    files=False,
    base_urls=("api.deepseek.com",),
    model_prefixes=("deepseek-chat", "deepseek-reasoner", "deepseek-v4", "deepseek-flash", "deepseek/"),
    model_words=("deepseek",),
    evidence={
        "developer_role": "https://github.com/earendil-works/pi/issues/1048",
        "max_tokens_field": f"{ANY_LLM}/providers/deepseek/deepseek.py",
        "reasoning_replay": "https://github.com/syt2/paper-chat-for-zotero/issues/16",
        "reasoning_replay_always": "https://api-docs.deepseek.com/guides/thinking_mode",
        "effort_levels": "https://api-docs.deepseek.com/guides/thinking_mode",
        "response_formats": "https://api-docs.deepseek.com/api/create-chat-completion",
        "parallel_tool_calls": f"{ANY_LLM}/providers/deepseek/deepseek.py",
        "tool_choice_modes": f"{ANY_LLM}/providers/deepseek/deepseek.py",
        "files": f"{ANY_LLM}/providers/deepseek/deepseek.py",
        "model_words": "https://api-docs.deepseek.com/guides/thinking_mode",
    },
)
