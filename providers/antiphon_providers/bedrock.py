"""Bedrock's OpenAI endpoints: `<reasoning>` in the text, several fragments of a call in one chunk, text on the finish."""

from antiphon.profile import Profile

from .quirks import SplitTags
from .sources import ANY_LLM

PROFILE = Profile(
    "bedrock",
    reasoning_fields=("reasoning", "reasoning_content", "reasoning_text"),
    quirks=(SplitTags("<reasoning>", "</reasoning>"),),
    files=False,
    base_urls=("bedrock-runtime*.amazonaws.com/openai", "bedrock-mantle.*.api.aws"),
    model_prefixes=("bedrock/", "openai.gpt-oss"),
    evidence={
        "reasoning_fields": "chat/bedrock-mantle/llama-stack--common-ff19c977a37c7d04c2337.jsonl",
        "quirks": "chat/bedrock-openai-compat/llama-stack--inference-3dcb9e38f66c963235.jsonl",
        "files": f"{ANY_LLM}/providers/bedrock/bedrock.py",
    },
)
