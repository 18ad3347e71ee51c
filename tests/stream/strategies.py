"""Random conversations, and random ways in which a provider may cut them into chunks.

A `Conversation` says what must come out. A `Manner` is how it is sent; `render` gives the chunks. What the manner does
must never change what comes out.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from hypothesis import strategies as st

from .cases.build import ABSENT, Json, bare, chunk, counted, custom, detail, details, frag, given, tokens

Kind: TypeAlias = Literal["reasoning", "text", "refusal", "call", "custom"]


@dataclass(frozen=True)
class Said:
    """One thing that the model says. `id` and `name` are those of calls; an id of "" is never sent."""

    kind: Kind
    content: str
    name: str = ""
    id: str = ""

    @property
    def is_call(self) -> bool:
        return self.kind in ("call", "custom")


@dataclass(frozen=True)
class Conversation:
    """What the model says, in order, and how it ends."""

    said: tuple[Said, ...]
    finish: str
    usage: Json | None

    def of(self, kind: Kind) -> str:
        return "".join(one.content for one in self.said if one.kind == kind)


@dataclass(frozen=True)
class Manner:
    """How a conversation is sent. The defaults are those of a plain provider."""

    seed: int = 0
    piece: int = 1000  # the longest piece, in characters
    interleave: bool = False
    indexes: Literal["own", "from 1", "none", "all 0"] = "own"
    again: Literal["index", "id", "both", "empties"] = "index"  # what later fragments of a call carry
    head: Literal["whole", "name later", "arguments first", "name in pieces"] = "whole"
    legacy: bool = False  # `function_call`, where there is one call
    fields: tuple[str, ...] = ("reasoning_content",)
    usage_at: Literal["end", "finish", "first", "every"] = "end"
    noise: bool = False  # chunks that say nothing
    together: bool = False  # several things in one chunk
    finish_with_last: bool = False


PLAIN = Manner()

# Characters that something might trip over.
LETTERS = 'ab \n{}[]":\\,<|\u00e9\u2028\u0301\U0001f600'
NAMES = ("look_up", "dig", "fetch_page", "run")
VALUES: tuple[Any, ...] = (
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

words = st.text(LETTERS, min_size=1, max_size=9).filter(lambda text: bool(text.strip()))


@st.composite
def arguments(draw: st.DrawFn) -> str:
    """Draw the JSON text of a call's arguments."""
    value = draw(st.dictionaries(st.sampled_from(("a", "b c", "\u00e9", '"')), st.sampled_from(VALUES), max_size=2))
    whole: Any = draw(st.sampled_from((value, value, value, list(value.values()), '}"', 7)))
    return json.dumps(whole, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from((None, None, 1))))


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Draw a conversation of up to five things."""
    said: list[Said] = []
    for n in range(draw(st.integers(0, 5))):
        kind: Kind = draw(st.sampled_from(("text", "reasoning", "call", "call", "refusal", "custom")))
        if kind in ("call", "custom"):
            content = draw(arguments()) if kind == "call" else draw(words)
            said.append(
                Said(kind, content, draw(st.sampled_from(NAMES)), draw(st.sampled_from((f"call-{n}", f"call-{n}", ""))))
            )
        elif not (said and said[-1].kind == kind):
            said.append(Said(kind, draw(words)))
    # A call without arguments is no item before the end: text would go before it.
    if said and said[-1].kind == "call" and draw(st.booleans()):
        said[-1] = Said("call", "", said[-1].name, said[-1].id)
    finish = draw(st.sampled_from(("stop", "tool_calls", "stop", "length", "content_filter")))
    usage = draw(st.sampled_from((None, tokens(5, 2), tokens(9, 0, prompt_tokens_details={"cached_tokens": 4}))))
    return Conversation(tuple(said), finish, usage)


def manners() -> st.SearchStrategy[Manner]:
    """Return the strategy of ways to send."""
    return st.builds(
        Manner,
        seed=st.integers(0, 2**32),
        piece=st.sampled_from((1, 2, 4, 1000)),
        interleave=st.booleans(),
        indexes=st.sampled_from(("own", "own", "from 1", "none", "all 0")),
        again=st.sampled_from(("index", "id", "both", "empties")),
        head=st.sampled_from(("whole", "name later", "arguments first", "name in pieces")),
        legacy=st.booleans(),
        fields=st.sampled_from((("reasoning_content",), ("reasoning",), ("reasoning_content", "reasoning"))),
        usage_at=st.sampled_from(("end", "finish", "first", "every")),
        noise=st.booleans(),
        together=st.booleans(),
        finish_with_last=st.booleans(),
    )


# One piece of what is said. `rank` is its place in the order inside one chunk.


@dataclass(frozen=True)
class Atom:
    """The smallest thing that is sent: a key of the delta and its value."""

    key: str
    value: Any
    rank: int
    named: bool = False  # with it, the call's name is whole
    argued: bool = False  # it has something visible of the call's arguments


RANKS = {"reasoning": 1, "refusal": 2, "text": 3}
BEGUN, NEW = 0, 4

NOISE: tuple[Json, ...] = (
    chunk({"role": "assistant", "content": ""}),
    chunk({}),
    chunk({"content": None, "reasoning_content": None, "tool_calls": None}),
    bare([]),
    chunk({"unheard_of": 1}),
)


def render(talk: Conversation, manner: Manner = PLAIN) -> list[Json]:
    """Return the chunks."""
    dice = random.Random(manner.seed)
    deltas = list(_deltas(_in_turn(talk, manner, dice), manner, dice))
    body = [chunk(delta) for delta in deltas]
    if body and manner.finish_with_last:
        body[-1]["choices"][0]["finish_reason"] = talk.finish
    else:
        body.append(chunk({}, talk.finish))
    body = _with_usage(body, talk.usage, manner.usage_at)
    return [one for each in body for one in (*_noise(manner, dice), each)]


def _noise(manner: Manner, dice: random.Random) -> tuple[Json, ...]:
    return (dice.choice(NOISE),) if manner.noise and dice.random() < 0.3 else ()


def _with_usage(body: list[Json], usage: Json | None, where: str) -> list[Json]:
    if usage is None:
        return body
    match where:
        case "first":
            return [counted(usage), *body]
        case "end":
            return [*body, counted(usage)]
        case "finish":
            return [*body[:-1], {**body[-1], "usage": usage}]
        case _:
            return [{**one, "usage": usage} for one in body]


def _deltas(atoms: Sequence[Atom], manner: Manner, dice: random.Random) -> Iterator[Json]:
    """Yield the deltas: one for each atom, or several atoms in one where their order allows it."""
    group: list[Atom] = []
    for atom in atoms:
        if group and not (manner.together and _fits(group, atom) and dice.random() < 0.5):
            yield _delta(group)
            group = []
        group.append(atom)
    if group:
        yield _delta(group)


def _fits(group: Sequence[Atom], after: Atom) -> bool:
    """Whether an atom may be in one chunk with those before it: fragments of calls go before all else, new calls after."""
    latest = max(atom.rank for atom in group)
    return latest < after.rank or all(atom.key == "tool_calls" for atom in (*group, after))


def _delta(group: Sequence[Atom]) -> Json:
    delta: Json = {}
    for atom in group:
        if atom.key == "tool_calls":
            delta.setdefault("tool_calls", []).append(atom.value)
        else:
            delta.update(atom.value if atom.key == "reasoning" else {atom.key: atom.value})
    return delta


@dataclass
class Lane:
    """What is left to send of one thing that is said."""

    said: Said
    atoms: list[Atom]
    sent: int = 0

    @property
    def announced(self) -> bool:
        """Whether a call has its name and some of its arguments."""
        sent = self.atoms[: self.sent]
        return any(atom.named for atom in sent) and any(atom.argued for atom in sent)

    @property
    def begun(self) -> bool:
        return self.sent > 0

    @property
    def over(self) -> bool:
        return self.sent == len(self.atoms)


def _in_turn(talk: Conversation, manner: Manner, dice: random.Random) -> list[Atom]:
    """Return the atoms of all lanes in an order that the grammar allows without a change of the output."""
    lanes = _lanes(talk, manner, dice)
    order: list[Atom] = []
    while open_lanes := [n for n, lane in enumerate(lanes) if not lane.over]:
        ready = [n for n in open_lanes if _may_go_on(lanes, n)] if manner.interleave else open_lanes[:1]
        lane = lanes[dice.choice(ready)]
        atom = lane.atoms[lane.sent]
        lane.sent += 1
        order.append(atom)
    return order


def _may_go_on(lanes: Sequence[Lane], n: int) -> bool:
    """Whether lane n may send: one that has begun always; a new one when all before it have gone far enough."""
    return lanes[n].begun or all(_far_enough(before, lanes[n]) for before in lanes[:n])


def _far_enough(before: Lane, new: Lane) -> bool:
    """Whether what comes before lets a new one begin: what is no call must be over; a call must be announced before
    what is no call, and have begun before another call."""
    if not before.said.is_call:
        return before.over
    return before.begun if new.said.is_call else before.announced


def _lanes(talk: Conversation, manner: Manner, dice: random.Random) -> list[Lane]:
    calls = [one for one in talk.said if one.is_call]
    legacy = manner.legacy and len(calls) == 1 and calls[0].kind == "call" and not calls[0].id
    made: list[Lane] = []
    count = iter(range(len(calls)))
    for one in talk.said:
        if legacy and one.is_call:
            atoms = list(_legacy_atoms(one, manner, dice))
        elif one.is_call:
            atoms = list(_call_atoms(one, _Ways.of(calls, next(count), manner), manner, dice))
        else:
            atoms = list(_text_atoms(one, manner, dice))
        made.append(Lane(one, atoms))
    return made


def _pieces(text: str, longest: int, dice: random.Random, may_be_white: bool = True) -> list[str]:
    """Return the text in pieces of at most `longest` characters; pieces of white space alone only where they may be."""
    made: list[str] = []
    while text:
        size = dice.randint(1, longest)
        while not may_be_white and size < len(text) and not (text[:size].strip() and text[size:].strip()):
            size += 1
        made.append(text[:size])
        text = text[size:]
    return made


def _text_atoms(one: Said, manner: Manner, dice: random.Random) -> Iterator[Atom]:
    rank = RANKS[one.kind]
    for piece in _pieces(one.content, manner.piece, dice):
        if one.kind == "reasoning":
            yield Atom("reasoning", dict.fromkeys(manner.fields, piece), rank)
        else:
            yield Atom("content" if one.kind == "text" else "refusal", piece, rank)


def _legacy_atoms(one: Said, manner: Manner, dice: random.Random) -> Iterator[Atom]:
    yield Atom("function_call", {"name": one.name, "arguments": ""}, NEW, named=True)
    for piece in _pieces(one.content, manner.piece, dice):
        yield Atom("function_call", {"arguments": piece}, BEGUN, argued=bool(piece.strip()))


@dataclass(frozen=True)
class _Ways:
    """How the fragments of one call say whose they are."""

    index: Any
    id: Any
    later: Json = field(default_factory=dict[str, Any])  # what later fragments carry
    head: str = "whole"

    @staticmethod
    def of(calls: Sequence[Said], n: int, manner: Manner) -> _Ways:
        """Return the ways of call n, as near to the manner as keeps the calls apart."""
        all_have_ids = all(one.id for one in calls)
        indexes = manner.indexes if all_have_ids else "own"
        own = {"own": n, "from 1": n + 1, "none": ABSENT, "all 0": 0}[indexes]
        id = calls[n].id or ABSENT
        again = manner.again if calls[n].id else ("empties" if manner.again == "empties" else "index")
        if indexes == "all 0":
            again = "both"
        elif indexes == "none" and (len(calls) > 1 or again == "empties"):
            again = "id"
        later = {"index": given(index=own), "id": given(id=id), "both": given(index=own, id=id)}
        later["empties"] = given(index=own, id="")
        return _Ways(own, id, later[again], manner.head if calls[n].id and calls[n].kind == "call" else "whole")


def _call_atoms(one: Said, ways: _Ways, manner: Manner, dice: random.Random) -> Iterator[Atom]:
    """Yield the fragments of one call: its head, the rest of its name, the rest of its arguments or input."""
    traceless = not ways.later.get("id") and "index" not in ways.later
    pieces = _pieces(one.content, manner.piece, dice, may_be_white=not traceless)
    steps = _steps(one, ways.head, pieces, dice)
    type = {"type": "custom"} if one.kind == "custom" else {}
    for n, (name, piece, named) in enumerate(steps):
        whose = {**given(index=ways.index, id=ways.id), **type} if n == 0 else ways.later
        if name is ABSENT and n and manner.again == "empties":
            name = ""
        yield Atom("tool_calls", {**whose, **_inner(one, name, piece)}, BEGUN if n else NEW, named, bool(piece.strip()))


def _steps(one: Said, head: str, pieces: list[str], dice: random.Random) -> list[tuple[Any, str, bool]]:
    """Return name, piece of the arguments, and whether the name is whole with it, for each fragment of a call."""
    rest = [(ABSENT, piece, False) for piece in pieces]
    first = pieces[0] if pieces and dice.random() < 0.5 else ""
    after = rest[1:] if first else rest
    if head == "name later":
        return [(ABSENT, "", False), (one.name, first, True), *after]
    if head == "arguments first" and pieces:
        return [rest[0], (one.name, "", True), *rest[1:]]
    if head == "name in pieces":
        at = dice.randint(2, len(one.name) - 1)
        return [(one.name[:at], "", False), (one.name[at:], first, True), *after]
    return [(one.name, first, True), *after]


def _inner(one: Said, name: Any, piece: str) -> Json:
    if one.kind == "custom":
        return {"custom": given(name=name, input=piece)}
    return {"function": given(name=name, arguments=piece)}


# Scraps: chunks in no sensible order. Nothing says what calls they make, but some things hold of any stream.

FRAGMENTS: st.SearchStrategy[Json] = st.builds(
    frag,
    st.sampled_from((0, 0, 1, 2, ABSENT, None)),
    st.sampled_from(("call-a", "call-b", "", ABSENT, ABSENT)),
    st.sampled_from(("f", "g", "fg", "", ABSENT, ABSENT)),
    st.sampled_from(('{"a":', "1}", '{"b":2}', "{}", "", " ", '"x"', "7", None, ABSENT)),
)
CUSTOM: st.SearchStrategy[Json] = st.builds(
    custom, st.sampled_from((0, 1, 2)), st.sampled_from(("call-c", ABSENT)), st.sampled_from(("g", ABSENT)), words
)
SCRAPS: st.SearchStrategy[Json] = st.one_of(
    st.sampled_from(("Hi", " ", "\n", "there")).map(lambda text: chunk({"content": text})),
    st.sampled_from(("hm", " ", "so")).map(lambda text: chunk({"reasoning_content": text})),
    st.sampled_from(("no", " ")).map(lambda text: chunk({"refusal": text})),
    FRAGMENTS.map(lambda one: chunk({"tool_calls": [one]})),
    FRAGMENTS.map(lambda one: chunk({"tool_calls": [one]})),
    st.lists(FRAGMENTS, min_size=2, max_size=3).map(
        lambda several: chunk({"tool_calls": several, "content": "beside"})
    ),
    CUSTOM.map(lambda one: chunk({"tool_calls": [one]})),
    st.sampled_from(
        (
            chunk({"function_call": {"name": "f", "arguments": "{"}}),
            chunk({"function_call": {"arguments": "}"}}),
            details(detail("encrypted", index=0, data="c2VhbGVk")),
            details(detail("text", index=0, text="hm", signature="sig")),
            details(detail("encrypted", index=1, id="call-a", data="Y2FsbA==")),
            chunk({"annotations": [{"type": "url_citation", "url": "https://example.org"}]}),
            chunk({}, choice={"logprobs": {"content": [{"token": "x", "logprob": -1.0}]}}),
            chunk({"content": "other"}, index=1),
            counted(tokens(1, 2)),
            chunk({}, "stop"),
            chunk({}, "length"),
        )
    ),
)
scrap_streams = st.lists(SCRAPS, max_size=9)
