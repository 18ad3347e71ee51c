"""Hugging Face's router: the shape of whoever answers (Cerebras, Groq, Together, Novita), `<think>` in the text of R1."""

from antiphon.profile import Profile

from .quirks import SplitTags
from .sources import ANY_LLM, PI

# What Together and Cerebras refuse, the router refuses.
PROFILE = Profile(
    "huggingface",
    quirks=(SplitTags(),),
    developer_role=False,
    single_leading_system=True,  # many chat templates, as Qwen's, refuse any other
    files=False,
    strict_tools=False,
    base_urls=("router.huggingface.co", "*.endpoints.huggingface.cloud"),
    model_prefixes=("huggingface/",),
    evidence={
        "quirks": "chat/huggingface-router/pydantic-ai--test-huggingface-test-hf-model-thinking-part-iter.jsonl",
        "developer_role": PI,
        "single_leading_system": "https://github.com/BerriAI/litellm/pull/39852",
        "files": f"{ANY_LLM}/providers/huggingface/huggingface.py",
        "strict_tools": PI,
    },
)
