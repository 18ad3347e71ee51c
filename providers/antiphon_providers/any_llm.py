"""any-llm: `reasoning` is an object with `content`; each provider's oddities are gone."""

from antiphon.profile import Profile

from .sources import ANY_LLM

PROFILE = Profile(
    "any_llm",
    reasoning_fields=("reasoning", "reasoning_content", "reasoning_text"),
    thought_signatures=True,
    effort_levels=("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    passthrough=frozenset({"user"}),
    model_prefixes=("any-llm/", "any_llm/"),
    evidence={
        "reasoning_fields": f"{ANY_LLM}/types/completion.py",
        "thought_signatures": f"{ANY_LLM}/providers/gemini/utils.py",
        "effort_levels": f"{ANY_LLM}/types/completion.py",
        "passthrough": f"{ANY_LLM}/types/completion.py",
    },
)
