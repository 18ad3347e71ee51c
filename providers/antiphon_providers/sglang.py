"""SGLang: every key of a delta present and null, `matched_stop` in the choice, `reasoning_content`."""

from antiphon.profile import Profile

_SERVER = "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/entrypoints/openai/protocol.py"

PROFILE = Profile(
    "sglang",
    reasoning_fields=("reasoning_content", "reasoning", "reasoning_text"),
    developer_role=True,
    single_leading_system=True,  # many chat templates, as Qwen's, refuse any other
    files=False,
    reasoning_replay="reasoning_content",
    effort_levels=("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    passthrough=frozenset({"top_k", "user"}),
    base_urls=("*:30000",),
    model_prefixes=("sglang/",),
    evidence={
        "reasoning_fields": "chat/sglang/issue--sglang-9657-gpt-oss-reasoning.jsonl",
        "developer_role": _SERVER,
        "single_leading_system": "https://github.com/BerriAI/litellm/pull/39282",
        "files": _SERVER,
        "reasoning_replay": _SERVER,
        "effort_levels": _SERVER,
        "passthrough": _SERVER,
    },
)
