"""`docs/providers.md`, made of the profiles. `python -m tests.providers.table` writes it anew."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from antiphon import Profile

from .known import MODULES, RECORDED

PAGE = Path(__file__).parents[2] / "docs" / "providers.md"
DEFAULT = Profile()
NO_FACTS = ("name", "evidence", "base_urls", "model_prefixes")

HEAD = """\
# Providers

A profile is data: what is odd about a provider's chunk stream, and what its endpoint accepts in a request. Give its
name wherever a profile is asked for, or change a copy of it:

```python
from dataclasses import replace

from antiphon import convert, load_profile
from antiphon_providers.quirks import SplitTags, ToolCallTags

chunks = [{"choices": [{"delta": {"reasoning_content": "Hm."}}]}]  # what the provider sent
events = convert(chunks, profile="deepseek")
mine = replace(load_profile("lmstudio"), name="mine", quirks=(SplitTags(), ToolCallTags()))
```

Without one the default reads any provider; it lacks only what must be asked for, because it would be a guess: tags in
the text, and streams that end without a finish_reason. `find_profile(base_url=…, model=…)` finds a profile by where a
server is or what a model is called. A package of your own adds profiles through the entry-point group
`antiphon.providers`, and quirks as classes with `start()`.

## Quirks

| quirk | what it does |
|---|---|
| `SplitTags("<think>", "</think>")` | text between tags at the very start of the content is reasoning; `opened_by_prompt=True` where the prompt ends with the opening tag |
| `ToolCallTags()` | `<tool_call>{"name": …, "arguments": …}</tool_call>` in the text is a call |
| `CumulativeText()` | each delta repeats all of the text so far, and only what is new goes on |

## Profiles

*Recorded* names the folders of recorded streams that the tests run through the profile; *from public sources* means that
there are none. `qwen` is also called `dashscope`.

| profile | recorded | what its streams do |
|---|---|---|
"""

FACTS = """
## Facts and evidence

Only what differs from OpenAI's own, with where it was seen: a recorded stream, a page of the vendor, the source of the
server or of a client that talks to it, or a public thread.
"""


def page() -> str:
    """Return the page as it should be."""
    rows = "".join(_row(name) for name in sorted(MODULES))
    parts = [HEAD, rows, FACTS, *(_facts(name) for name in sorted(MODULES))]
    return "".join(parts)


def _row(name: str) -> str:
    recorded = ", ".join(f"`{folder}`" for folder in RECORDED.get(name, ())) or "from public sources"
    doc = (MODULES[name].__doc__ or "").strip().splitlines()[0]
    return f"| `{name}` | {recorded} | {doc} |\n"


def _facts(name: str) -> str:
    profile: Profile = MODULES[name].PROFILE
    told = [one for one in fields(Profile) if one.name not in NO_FACTS and _tells(profile, one.name)]
    lines = [
        f"| `{one.name}` | {_shown(getattr(profile, one.name))} | {_source(profile, one.name)} |\n" for one in told
    ]
    where = ", ".join(f"`{pattern}`" for pattern in profile.base_urls) or "any address"
    models = ", ".join(f"`{start}…`" for start in profile.model_prefixes)
    table = "".join(["\n| fact | value | evidence |\n|---|---|---|\n", *lines]) if lines else "\nNothing differs.\n"
    return f"\n### {name}\n\nFound at {where}; models {models}.\n{table}"


def _tells(profile: Profile, fact: str) -> bool:
    return fact in profile.evidence or getattr(profile, fact) != getattr(DEFAULT, fact)


def _shown(value: Any) -> str:
    if isinstance(value, frozenset):
        value = sorted(value)
    if isinstance(value, list | tuple):
        return ", ".join(f"`{one}`" for one in value) or "nothing"
    return f"`{value}`"


def _source(profile: Profile, fact: str) -> str:
    source = profile.evidence.get(fact, "")
    return f"<{source}>" if source.startswith("https://") else f"`{source}`"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
