"""What a model says, whoever sends it: `Conversation`, and the strategy that draws one."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from hypothesis import strategies as st

Kind: TypeAlias = Literal["reasoning", "text", "refusal", "call", "custom"]
Finish: TypeAlias = Literal["stop", "tool_calls", "length", "content_filter"]

KINDS: tuple[Kind, ...] = get_args(Kind)
NAMES = ("look_up", "dig", "fetch_page", "run")
FINISHES: tuple[Finish, ...] = get_args(Finish)  # the first two are not a cut
# Characters that something might trip over: quotes, separators, half of a surrogate pair's worth, combining marks.
LETTERS = 'ab \n{}[]":\\,<|\u00e9\u2028\u0301\U0001f600'
_VALUES: tuple[Any, ...] = (
    1,
    -2.5,
    True,
    None,
    "",
    "x y",
    '"}{"',
    "\\",
    "\u00fc\U0001f600\n",
    [],
    [1, {"z": []}],
    {"k": {}},
)


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that the model says. `name` and `id` are those of calls; a call whose id is "" is sent without one."""

    kind: Kind
    content: str
    name: str = ""
    id: str = ""

    @property
    def is_call(self) -> bool:
        """Whether it is a call of a function or of a custom tool."""
        return self.kind in ("call", "custom")


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the model says, in order, how it ends, and what it cost: prompt and completion tokens, or None.

    >>> Conversation((Said("text", "Hi"),), "stop").finish
    'stop'
    """

    said: tuple[Said, ...]
    finish: Finish = "stop"
    usage: tuple[int, int] | None = None

    def of(self, kind: Kind) -> str:
        """Return all that is said of one kind, joined."""
        return "".join(one.content for one in self.said if one.kind == kind)

    @property
    def is_cut(self) -> bool:
        """Whether a limit or a filter ended it."""
        return self.finish in ("length", "content_filter")


words = st.text(LETTERS, min_size=1, max_size=9).filter(lambda text: bool(text.strip()))
# What goes to a custom tool is free text; two JSON texts would look like the arguments of two calls in one.
_inputs = words.filter(lambda text: text.lstrip()[0] not in '{["')


@st.composite
def _arguments(draw: st.DrawFn) -> str:
    """Draw the JSON text of a call's arguments: an object, as a rule."""
    held = draw(st.dictionaries(st.sampled_from(("a", "b c", "\u00e9", '"')), st.sampled_from(_VALUES), max_size=2))
    whole: Any = draw(st.sampled_from((held, held, held, list(held.values()), '}"', 7)))
    return json.dumps(whole, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from((None, None, 1))))


@st.composite
def conversations(draw: st.DrawFn, kinds: Collection[Kind] = KINDS, *, most: int = 5) -> Conversation:
    """Draw a conversation of up to `most` things of these kinds.

    What is next to each other is not of one kind, unless it is calls: two texts in a row are one text.
    """
    allowed: list[Kind] = [kind for kind in KINDS if kind in kinds]
    said: list[Said] = []
    for n in range(draw(st.integers(0, most)) if allowed else 0):
        kind = draw(st.sampled_from(allowed))
        if kind in ("call", "custom"):
            content = draw(_arguments() if kind == "call" else _inputs)
            id = draw(st.sampled_from((f"call-{n}", f"call-{n}", "")))
            said.append(Said(kind, content, draw(st.sampled_from(NAMES)), id))
        elif not (said and said[-1].kind == kind):
            said.append(Said(kind, draw(words)))
    finish = draw(st.sampled_from(FINISHES if _may_be_cut(said) else FINISHES[:2]))
    usage = draw(st.sampled_from((None, (5, 2), (9, 0))))
    return Conversation(tuple(said), finish, usage)


def _may_be_cut(said: list[Said]) -> bool:
    """Whether it is plain which item a limit cuts: the last one, where nothing before it waits for more."""
    before = said[:-1]
    waiting = any(one.kind == "custom" or (one.kind == "call" and one.content[0] not in '{["') for one in before)
    return not waiting and not (before and said[-1].kind == "reasoning")
