"""Ollama: `reasoning` beside empty content, calls whole in one chunk, older ones without index and with finish `stop`."""

from antiphon.profile import Profile

_SERVER = "https://github.com/ollama/ollama/blob/main/openai/openai.go"

# Roles go to the model's template as they are, and templates know no `developer`; `tool_choice` is not read.
PROFILE = Profile(
    "ollama",
    reasoning_fields=("reasoning", "reasoning_content", "reasoning_text"),
    developer_role=False,
    single_leading_system=True,  # many chat templates, as Qwen's, refuse any other
    files=False,
    reasoning_replay="reasoning",
    max_tokens_field="max_tokens",
    parallel_tool_calls=False,
    tool_choice_modes=frozenset({"auto"}),
    base_urls=("localhost:11434", "*:11434", "ollama.com"),
    model_prefixes=("ollama/", "ollama_chat/"),
    evidence={
        "reasoning_fields": "chat/ollama/ruby_llm--n-calling-ollama-qwen3-can-use-tools-with-multi-turn-streaming-conversations.jsonl",
        "developer_role": "https://github.com/ollama/ollama-python/issues/453",
        "single_leading_system": "https://github.com/phuetz/code-buddy/pull/75",
        "files": _SERVER,
        "reasoning_replay": _SERVER,
        "max_tokens_field": _SERVER,
        "parallel_tool_calls": _SERVER,
        "tool_choice_modes": _SERVER,
    },
)
