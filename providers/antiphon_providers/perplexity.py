"""Perplexity: the whole `message` so far beside each delta, citations and usage on every chunk, no `[DONE]`."""

from antiphon.profile import Profile

from .sources import LITELLM

PROFILE = Profile(
    "perplexity",
    developer_role=False,
    single_leading_system=True,
    effort_levels=("minimal", "low", "medium", "high"),
    max_tokens_field="max_tokens",
    stream_usage=False,  # it comes on every chunk
    response_formats=frozenset({"text", "json_schema"}),
    parallel_tool_calls=False,
    base_urls=("api.perplexity.ai",),
    model_prefixes=("sonar", "perplexity/"),
    evidence={
        "developer_role": "https://docs.perplexity.ai/api-reference/chat-completions",
        "single_leading_system": "https://github.com/perplexityai/api-discussion/issues/265",
        "effort_levels": "https://docs.perplexity.ai/api-reference/chat-completions",
        "max_tokens_field": "https://docs.perplexity.ai/api-reference/chat-completions",
        "stream_usage": "chat/perplexity/rig--streaming-streaming-smoke.jsonl",
        "response_formats": "https://docs.perplexity.ai/api-reference/chat-completions",
        "parallel_tool_calls": f"{LITELLM}/perplexity/chat/transformation.py",
    },
)
