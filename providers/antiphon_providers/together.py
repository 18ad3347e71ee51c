"""Together: a finish_reason on each call with calls after it, the finish word `eos`, `<think>` in the text of R1."""

from antiphon.profile import Profile

from .quirks import SplitTags
from .sources import ANY_LLM, LITELLM, PI

PROFILE = Profile(
    "together",
    reasoning_fields=("reasoning", "reasoning_content", "reasoning_text"),
    quirks=(SplitTags(),),
    developer_role=False,
    files=False,
    effort_levels=("low", "medium", "high"),
    max_tokens_field="max_tokens",
    strict_tools=False,
    base_urls=("api.together.xyz", "api.together.ai"),
    model_prefixes=("together_ai/", "together/"),
    evidence={
        "reasoning_fields": f"{ANY_LLM}/providers/together/utils.py",
        "quirks": "chat/huggingface-router/pydantic-ai--test-huggingface-test-hf-model-thinking-part-iter.jsonl",
        "developer_role": PI,
        "files": f"{ANY_LLM}/providers/together/together.py",
        "effort_levels": f"{LITELLM}/together_ai/chat/transformation.py",
        "max_tokens_field": PI,
        "strict_tools": PI,
    },
)
