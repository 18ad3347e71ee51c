"""Groq: usage under `x_groq`, calls whole in one chunk, errors in mid-stream, `<think>` in the raw format."""

from antiphon.profile import Profile

from .quirks import SplitTags
from .sources import ANY_LLM

# What it does not know in a message is refused ("property … is unsupported").
PROFILE = Profile(
    "groq",
    reasoning_fields=("reasoning", "reasoning_content", "reasoning_text"),
    quirks=(SplitTags(),),
    developer_role=False,
    files=False,
    reasoning_replay="none",
    format_with_tools=False,
    passthrough=frozenset({"user"}),
    base_urls=("api.groq.com",),
    model_prefixes=("groq/",),
    evidence={
        "reasoning_fields": "chat/groq/rig--prompt-caching-streaming-probe--2.jsonl",
        "quirks": "chat/groq/pydantic-ai--test-groq-test-groq-model-thinking-part-iter.jsonl",
        "developer_role": "https://github.com/groq/groq-python/blob/main/src/groq/types/chat/chat_completion_system_message_param.py",
        "files": f"{ANY_LLM}/providers/groq/groq.py",
        "reasoning_replay": "https://github.com/vercel/ai/issues/8056",
        "format_with_tools": "https://github.com/vercel/ai/pull/16540",
        "passthrough": "https://console.groq.com/docs/api-reference",
    },
)
