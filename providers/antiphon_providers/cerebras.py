"""Cerebras: `reasoning`, calls whole in one chunk, usage and `time_info` on the finish chunk."""

from antiphon.profile import Profile

from .sources import ANY_LLM, LITELLM, PI

PROFILE = Profile(
    "cerebras",
    reasoning_fields=("reasoning", "reasoning_content", "reasoning_text"),
    developer_role=False,
    images=False,
    files=False,
    reasoning_replay="none",
    effort_levels=("none", "low", "medium", "high"),
    parallel_tool_calls=False,
    passthrough=frozenset({"user"}),
    base_urls=("api.cerebras.ai",),
    model_prefixes=("cerebras/",),
    evidence={
        "reasoning_fields": "chat/cerebras/vercel-ai--cerebras-cererebras-structured-output-tools--part2.jsonl",
        "developer_role": PI,
        "images": f"{ANY_LLM}/providers/cerebras/cerebras.py",
        "files": f"{ANY_LLM}/providers/cerebras/cerebras.py",
        "reasoning_replay": "https://github.com/Kilo-Org/kilocode/issues/10375",
        "effort_levels": "https://reference.langchain.com/python/integrations/langchain_cerebras",
        "parallel_tool_calls": "https://hexdocs.pm/req_llm/cerebras.html",
        "passthrough": f"{LITELLM}/cerebras/chat.py",
    },
)
