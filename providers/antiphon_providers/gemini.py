"""Gemini's OpenAI endpoint: no chunk id, calls without index or id, whole answers in one chunk, thought signatures."""

from antiphon.profile import Profile

PROFILE = Profile(
    "gemini",
    developer_role=False,
    thought_signatures=True,
    effort_levels=("none", "minimal", "low", "medium", "high"),
    format_with_tools=False,
    audio=True,
    base_urls=("generativelanguage.googleapis.com", "*aiplatform.googleapis.com/*/endpoints/openapi"),
    model_prefixes=("gemini-", "gemini/", "models/gemini", "google/gemini"),
    model_words=("gemini",),
    evidence={
        "developer_role": "https://ai.google.dev/gemini-api/docs/openai",
        "thought_signatures": "chat/gemini-openai-compat/issue--openmaic-1556-gemini3-tool-call.jsonl",
        "effort_levels": "https://ai.google.dev/gemini-api/docs/openai",
        "format_with_tools": "https://github.com/openai/openai-agents-python/issues/656",
        "audio": "https://ai.google.dev/gemini-api/docs/openai",
        "model_words": "https://ai.google.dev/gemini-api/docs/thought-signatures",
    },
)
