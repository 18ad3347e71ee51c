"""xAI: calls whole in one chunk, reasoning beside usage that counts it apart, no finish_reason key until the end."""

from antiphon.profile import Profile

from .sources import ANY_LLM, LITELLM, PI

PROFILE = Profile(
    "xai",
    developer_role=False,
    files=False,
    opens_seals=False,
    effort_levels=("none", "low", "medium", "high"),
    strict_tools=False,
    passthrough=frozenset({"user"}),
    base_urls=("api.x.ai", "*.api.x.ai"),
    model_prefixes=("grok-", "xai/", "x-ai/"),
    evidence={
        "developer_role": PI,
        "files": f"{ANY_LLM}/providers/xai/xai.py",
        "opens_seals": "https://github.com/Wei-Shaw/sub2api/issues/4535",
        "effort_levels": "https://docs.x.ai/developers/model-capabilities/text/reasoning",
        "strict_tools": f"{LITELLM}/xai/chat/transformation.py",
        "passthrough": f"{LITELLM}/xai/chat/transformation.py",
    },
)
