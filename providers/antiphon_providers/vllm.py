"""vLLM: `reasoning`, also twice under two names, `<think>` in the text where no parser is set, text before calls."""

from antiphon.profile import Profile

from .quirks import SplitTags
from .sources import ANY_LLM

_SERVER = "https://github.com/vllm-project/vllm/blob/main/vllm/entrypoints/openai/chat_completion/protocol.py"

PROFILE = Profile(
    "vllm",
    reasoning_fields=("reasoning", "reasoning_content", "reasoning_text"),
    quirks=(SplitTags(),),
    developer_role=True,
    single_leading_system=True,  # many chat templates, as Qwen's, refuse any other
    files=False,
    audio=True,
    reasoning_replay="reasoning",
    effort_levels=("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    max_tokens_field="max_completion_tokens",
    passthrough=frozenset({"top_k", "user"}),
    model_prefixes=("vllm/", "hosted_vllm/"),
    evidence={
        "reasoning_fields": "chat/vllm/llama-stack--66c64647aba657ff9c59b7706db8.jsonl",
        "quirks": "chat/vllm/llama-stack--inference-0248ff8a1be5ff5ba8.jsonl",
        "developer_role": "wire/vllm/chat_system_developer.sse",
        "single_leading_system": "https://github.com/nashsu/llm_wiki/issues/45",
        "files": f"{ANY_LLM}/providers/registry.py",
        "audio": "https://docs.vllm.ai/en/latest/features/multimodal_inputs.html",
        "reasoning_replay": "https://docs.vllm.ai/en/v0.17.1/features/interleaved_thinking/",
        "effort_levels": _SERVER,
        "max_tokens_field": "wire/vllm/chat_length_mct.sse",
        "passthrough": _SERVER,
    },
)
