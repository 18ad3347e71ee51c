"""Chat usage to Responses usage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias

Path: TypeAlias = tuple[str, str]  # the object in the usage that holds a count ("": the usage itself), and its name

# The count of the Responses API -> where the chat side has it, first number found.
# Sources: OpenAI's own details; deepseek (prompt_cache_hit_tokens); huggingface-router and Kimi (cached_tokens);
# cline-gateway and databricks (cache_*_input_tokens); github-copilot (reasoning_tokens at the top).
INPUT: Sequence[Path] = (("", "prompt_tokens"), ("", "input_tokens"))
OUTPUT: Sequence[Path] = (("", "completion_tokens"), ("", "output_tokens"))
TOTAL: Sequence[Path] = (("", "total_tokens"),)
CACHED: Sequence[Path] = (
    ("prompt_tokens_details", "cached_tokens"),
    ("input_tokens_details", "cached_tokens"),
    ("", "prompt_cache_hit_tokens"),
    ("", "cached_tokens"),
    ("", "cache_read_input_tokens"),
)
CACHE_WRITE: Sequence[Path] = (
    ("prompt_tokens_details", "cache_write_tokens"),
    ("prompt_tokens_details", "cache_creation_tokens"),
    ("input_tokens_details", "cache_write_tokens"),
    ("", "cache_creation_input_tokens"),
)
REASONING: Sequence[Path] = (
    ("completion_tokens_details", "reasoning_tokens"),
    ("output_tokens_details", "reasoning_tokens"),
    ("", "reasoning_tokens"),
)


def responses_usage(usage: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return `usage` in the words of the Responses API, or None where it holds no count (a databricks open chunk).

    Counts are tokens. Unknown details are 0; `total_tokens` is always input + output: a total that is missing or
    wrong is computed, and where the given one says that reasoning comes on top of the completion (xAI: total =
    prompt + completion + reasoning) output is completion + reasoning.
    """
    given_input, given_output, total = _first(usage, INPUT), _first(usage, OUTPUT), _first(usage, TOTAL)
    if given_input is None and given_output is None and total is None:
        return None
    reasoning = _first(usage, REASONING) or 0
    input_tokens, output_tokens = _both(given_input, given_output, total)
    if reasoning and total == input_tokens + output_tokens + reasoning:
        output_tokens += reasoning
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {
            "cached_tokens": _first(usage, CACHED) or 0,
            "cache_write_tokens": _first(usage, CACHE_WRITE) or 0,
        },
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": input_tokens + output_tokens,
    }


def _both(given_input: int | None, given_output: int | None, total: int | None) -> tuple[int, int]:
    """Return input and output; one that is missing is what the total leaves for it."""
    if given_input is None:
        return max((total or 0) - (given_output or 0), 0), given_output or 0
    if given_output is None:
        return given_input, max((total or given_input) - given_input, 0)
    return given_input, given_output


def _first(usage: Mapping[str, Any], paths: Sequence[Path]) -> int | None:
    for holder, name in paths:
        held: Any = usage.get(holder) if holder else usage
        value: Any = held.get(name) if isinstance(held, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if value is None:
            continue
        count = value if type(value) is int and value >= 0 else _count(value)  # pyright: ignore[reportUnknownArgumentType]
        if count is not None:
            return count
    return None


def _count(value: Any) -> int | None:
    """Return `value` as a count, or None where it is none: null, a negative number, a word."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and len(value) < 20 and value.strip().isdecimal():
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and value >= 0 else None


def __getattr__(name: str) -> Any:
    """Return `Usage` and its parts, which live with the models: programs of openai-agents look for them here."""
    if name in ("InputTokensDetails", "OutputTokensDetails", "RequestUsage", "Usage"):
        return getattr(import_module("antiphon.models"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
