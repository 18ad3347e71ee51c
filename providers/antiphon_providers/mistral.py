"""Mistral: typed content lists with `thinking` parts, calls without index or type, whole calls on the finish chunk."""

from antiphon.profile import Profile

from .sources import ANY_LLM, LITELLM

PROFILE = Profile(
    "mistral",
    developer_role=False,
    call_id_pattern=r"[a-zA-Z0-9]{9}",
    files=False,  # `file` parts hold a file id only
    reasoning_replay="typed_content",
    effort_levels=("none", "high"),
    max_tokens_field="max_tokens",
    stream_usage=False,  # it comes unasked
    passthrough=frozenset({"prompt_cache_key"}),
    base_urls=("api.mistral.ai", "*.mistral.ai"),
    model_prefixes=(
        "mistral-",
        "mistral/",
        "mistralai/",
        "ministral-",
        "magistral-",
        "codestral-",
        "devstral-",
        "pixtral-",
        "open-mistral",
        "open-mixtral",
    ),
    evidence={
        "developer_role": "https://docs.mistral.ai/api/",
        "call_id_pattern": "https://github.com/nearai/ironclaw/issues/1241",
        "files": f"{LITELLM}/mistral/chat/transformation.py",
        "reasoning_replay": f"{LITELLM}/mistral/chat/transformation.py",
        "effort_levels": f"{ANY_LLM}/providers/mistral/mistral.py",
        "max_tokens_field": "https://github.com/editor-code-assistant/eca/issues/231",
        "stream_usage": "chat/mistral/cagent--testexec-mistral-toolcall.jsonl",
        "passthrough": f"{LITELLM}/mistral/chat/transformation.py",
    },
)
