"""The counts in the usage of a chunk, under OpenAI's names.

Source: recordings of OpenAI, Anthropic's compatible API (`input_tokens`), and servers that count one side or a total
alone, or write numbers as text or floats.
"""

from __future__ import annotations

from .read import Json, mapping, whole

_PROMPT, _COMPLETION, _TOTAL = (
    ("prompt_tokens", "input_tokens"),
    ("completion_tokens", "output_tokens"),
    ("total_tokens",),
)
_NAMES = (*_PROMPT, *_COMPLETION, *_TOTAL)


def counts(usage: Json) -> bool:
    """Return whether a usage has any count."""
    return _count(usage, _NAMES) is not None


def counted(usage: object) -> Json | None:
    """Return the counts of a usage under OpenAI's names, None where it has none. One side is what the total leaves."""
    found = mapping(usage)
    prompt, completion, total = (_count(found, names) for names in (_PROMPT, _COMPLETION, _TOTAL))
    if prompt is None and completion is None and total is None:
        return None
    if prompt is None:
        prompt = max((total or 0) - (completion or 0), 0)
    if completion is None:
        completion = max((total or 0) - prompt, 0)
    places = (mapping(found.get("completion_tokens_details")), mapping(found.get("output_tokens_details")), found)
    reasoning = next((count for one in places if (count := _count(one, ("reasoning_tokens",)))), 0)
    details = {"completion_tokens_details": {"reasoning_tokens": reasoning}}
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total, **details}


def _count(held: Json, names: tuple[str, ...]) -> int | None:
    """Return the first count under these names that is one."""
    for name in names:
        count = whole(held[name]) if name in held else None
        if count is not None and count >= 0:
            return count
    return None
