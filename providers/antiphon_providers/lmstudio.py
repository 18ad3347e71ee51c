"""LM Studio: `reasoning_content`, a role on every chunk; its facts are read off public threads."""

from antiphon.profile import Profile

from .sources import ANY_LLM

PROFILE = Profile(
    "lmstudio",
    developer_role=False,
    single_leading_system=True,  # many chat templates, as Qwen's, refuse any other
    files=False,
    max_tokens_field="max_tokens",
    response_formats=frozenset({"text", "json_schema"}),
    tool_choice_modes=frozenset({"auto", "none", "required"}),
    base_urls=("localhost:1234", "*:1234"),
    model_prefixes=("lm_studio/", "lmstudio/"),
    evidence={
        "developer_role": "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/669",
        "single_leading_system": "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/2298",
        "files": f"{ANY_LLM}/providers/lmstudio/lmstudio.py",
        "max_tokens_field": "https://lmstudio.ai/docs/developer/openai-compat/chat-completions",
        "response_formats": "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/189",
        "tool_choice_modes": "https://github.com/antropia-studio/linguito/issues/21",
    },
)
