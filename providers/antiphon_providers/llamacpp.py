"""llama.cpp: the first characters of the arguments in the opening fragment, `timings`, a usage chunk for each candidate."""

from antiphon.profile import Profile

from .sources import ANY_LLM

# A named function is taken as any function: another one may be called.
PROFILE = Profile(
    "llamacpp",
    reasoning_fields=("reasoning_content", "reasoning", "reasoning_text"),
    developer_role=True,
    single_leading_system=True,  # many chat templates, as Qwen's, refuse any other
    null_content_with_calls=True,
    files=False,
    reasoning_replay="reasoning_content",
    max_tokens_field="max_completion_tokens",
    tool_choice_modes=frozenset({"auto", "none", "required"}),
    model_prefixes=("llamacpp/", "llama.cpp/"),
    evidence={
        "reasoning_fields": "wire/llamacpp/chat_reasoning.sse",
        "developer_role": "wire/llamacpp/chat_system_developer.sse",
        "single_leading_system": "https://github.com/ggml-org/llama.cpp/issues/27367",
        "null_content_with_calls": "wire/llamacpp/chat_tool_history.sse",
        "files": f"{ANY_LLM}/providers/registry.py",
        "reasoning_replay": "https://github.com/ggml-org/llama.cpp/blob/master/common/chat.cpp",
        "max_tokens_field": "wire/llamacpp/chat_length_mct.sse",
        "tool_choice_modes": "wire/llamacpp/chat_tool_named.sse",
    },
)
