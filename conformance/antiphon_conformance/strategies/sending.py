"""How a conversation is sent: cut into chunks, its calls mixed, with oddities that providers have.

What is said becomes atoms, the smallest things that are sent; each thing that is said is a lane of them, and the lanes
are merged in an order that the grammar allows.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hypothesis import strategies as st

from .conversations import Conversation, Said, conversations
from .events import answer
from .manners import ODDITIES, Manner, manner_of

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChunkStream:
    """A conversation as it was sent. `events` are the canonical stream of it, to compare with by `same_output`."""

    chunks: list[Json]
    conversation: Conversation
    oddities: tuple[str, ...]
    events: list[Json] = field(repr=False)


@st.composite
def chunk_streams(
    draw: st.DrawFn,
    talks: st.SearchStrategy[Conversation] | None = None,
    *,
    oddities: Collection[str] = tuple(ODDITIES),
) -> ChunkStream:
    """Draw a chunk stream: one of `talks`, sent with some of these oddities (names of `ODDITIES`)."""
    talk = draw(conversations() if talks is None else talks)
    known = [name for name in ODDITIES if name in oddities]
    chosen = draw(st.lists(st.sampled_from(known), unique=True, max_size=4)) if known else []
    manner = manner_of(*chosen, seed=draw(st.integers(0, 2**16)))
    return ChunkStream(send(talk, manner), talk, tuple(chosen), answer(talk))


def send(talk: Conversation, manner: Manner | None = None) -> list[Json]:
    """Return the chunks.

    >>> chunks = send(Conversation((Said("text", "Hi"),)))
    >>> [chunk["choices"][0]["delta"] for chunk in chunks]
    [{'content': 'Hi'}, {}]
    """
    manner = manner or Manner()
    dice = random.Random(manner.seed)
    body = [chunk(delta) for delta in _deltas(_in_turn(talk, manner, dice), manner, dice)]
    if body and manner.finish_with_last:
        body[-1]["choices"][0]["finish_reason"] = talk.finish
    else:
        body.append(chunk({}, talk.finish))
    body = _with_usage(body, talk.usage, manner.usage_at)
    return [one for each in body for one in (*_noise(manner, dice), each)]


def chunk(delta: Json, finish: str | None = None) -> Json:
    """Return a chunk with one choice."""
    return _bare([{"index": 0, "delta": delta, "finish_reason": finish}])


def _bare(choices: list[Json], **more: Any) -> Json:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "m"}
    return {**head, "choices": choices, **more}


def _noise(manner: Manner, dice: random.Random) -> tuple[Json, ...]:
    if not manner.noise or dice.random() >= 0.3:
        return ()
    said_nothing = (
        chunk({"role": "assistant", "content": ""}),
        chunk({}),
        chunk({"content": None, "tool_calls": None}),
        _bare([]),
    )
    return (dice.choice(said_nothing),)


def _with_usage(body: list[Json], counts: tuple[int, int] | None, where: str) -> list[Json]:
    if counts is None:
        return body
    prompt, completion = counts
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    match where:
        case "first":
            return [_bare([], usage=usage), *body]
        case "end":
            return [*body, _bare([], usage=usage)]
        case "finish":
            return [*body[:-1], {**body[-1], "usage": usage}]
        case _:
            return [{**one, "usage": usage} for one in body]


# --- atoms: the smallest things that are sent ----------------------------------------------------------------------

RANKS = {"reasoning": 1, "refusal": 2, "text": 3}  # the place in the order inside one chunk
BEGUN, NEW = 0, 4  # of fragments of calls


@dataclass(frozen=True, slots=True)
class Atom:
    """A key of the delta and its value. `rank` is its place in the order inside one chunk."""

    key: str
    value: Any
    rank: int
    named: bool = False  # with it, the call's name is whole
    argued: bool = False  # it has something visible of the call's arguments


@dataclass(slots=True)
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
    def over(self) -> bool:
        """Whether all was sent."""
        return self.sent == len(self.atoms)


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
    """Whether an atom may be in one chunk with those before it: fragments of calls before all else, new calls after."""
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


def _in_turn(talk: Conversation, manner: Manner, dice: random.Random) -> list[Atom]:
    """Return the atoms of all lanes in an order that the grammar allows without a change of the output."""
    lanes = _lanes(talk, manner, dice)
    order: list[Atom] = []
    while open_lanes := [n for n, lane in enumerate(lanes) if not lane.over]:
        ready = [n for n in open_lanes if _may_go_on(lanes, n)] if manner.interleave else open_lanes[:1]
        lane = lanes[dice.choice(ready)]
        order.append(lane.atoms[lane.sent])
        lane.sent += 1
    return order


def _may_go_on(lanes: Sequence[Lane], n: int) -> bool:
    """Whether lane n may send: one that has begun always; a new one when all before it have gone far enough."""
    return lanes[n].sent > 0 or all(_far_enough(before, lanes[n]) for before in lanes[:n])


def _far_enough(before: Lane, new: Lane) -> bool:
    """Whether what comes before lets a new one begin: what is no call must be over; a call must be announced before
    what is no call, and have begun before another call."""
    if not before.said.is_call:
        return before.over
    return before.sent > 0 if new.said.is_call else before.announced


def _lanes(talk: Conversation, manner: Manner, dice: random.Random) -> list[Lane]:
    calls = [one for one in talk.said if one.is_call]
    legacy = manner.legacy and len(calls) == 1 and calls[0].kind == "call" and not calls[0].id
    count = iter(range(len(calls)))
    made: list[Lane] = []
    for one in talk.said:
        if not one.is_call:
            atoms = _text_atoms(one, manner, dice)
        elif legacy:
            atoms = _legacy_atoms(one, manner, dice)
        else:
            atoms = _call_atoms(one, _Ways.of(calls, next(count), manner), manner, dice)
        made.append(Lane(one, list(atoms)))
    return made


def _pieces(text: str, longest: int, dice: random.Random, *, may_be_white: bool = True) -> list[str]:
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
    for piece in _pieces(one.content, manner.piece, dice):
        if one.kind == "reasoning":
            yield Atom("reasoning", dict.fromkeys(manner.fields, piece), RANKS[one.kind])
        else:
            yield Atom("content" if one.kind == "text" else "refusal", piece, RANKS[one.kind])


def _legacy_atoms(one: Said, manner: Manner, dice: random.Random) -> Iterator[Atom]:
    yield Atom("function_call", {"name": one.name, "arguments": ""}, NEW, named=True)
    for piece in _pieces(one.content, manner.piece, dice):
        yield Atom("function_call", {"arguments": piece}, BEGUN, argued=bool(piece.strip()))


@dataclass(frozen=True, slots=True)
class _Ways:
    """How the fragments of one call say whose they are: the keys of the first one, and of later ones."""

    first: Json
    later: Json
    head: str

    @staticmethod
    def of(calls: Sequence[Said], n: int, manner: Manner) -> _Ways:
        """Return the ways of call n, as near to the manner as keeps the calls apart."""
        id = calls[n].id
        indexes = manner.indexes if all(one.id for one in calls) else "own"
        index: Json = {"own": {"index": n}, "from 1": {"index": n + 1}, "none": {}, "all 0": {"index": 0}}[indexes]
        named: Json = {"id": id} if id else {}
        again = manner.again if id or manner.again == "empties" else "index"
        if indexes == "all 0":
            again = "both"
        elif indexes == "none" and (len(calls) > 1 or again == "empties"):
            again = "id"
        later = {"index": index, "id": named, "both": {**index, **named}, "empties": {**index, "id": ""}}[again]
        return _Ways({**index, **named}, later, manner.head if id and calls[n].kind == "call" else "whole")


def _call_atoms(one: Said, ways: _Ways, manner: Manner, dice: random.Random) -> Iterator[Atom]:
    """Yield the fragments of one call: its head, the rest of its name, the rest of its arguments or input."""
    traceless = not ways.later.get("id") and "index" not in ways.later
    pieces = _pieces(one.content, manner.piece, dice, may_be_white=not traceless)
    kind = {"type": "custom"} if one.kind == "custom" else {}
    for n, (name, piece, named) in enumerate(_steps(one, ways.head, pieces, dice)):
        whose = {**ways.first, **kind} if n == 0 else ways.later
        told = "" if name is None and n and manner.again == "empties" else name
        yield Atom("tool_calls", {**whose, **_inner(one, told, piece)}, BEGUN if n else NEW, named, bool(piece.strip()))


def _steps(one: Said, head: str, pieces: list[str], dice: random.Random) -> list[tuple[str | None, str, bool]]:
    """Return name, piece of the arguments, and whether the name is whole with it, for each fragment of a call."""
    rest: list[tuple[str | None, str, bool]] = [(None, piece, False) for piece in pieces]
    first = pieces[0] if pieces and dice.random() < 0.5 else ""
    after = rest[1:] if first else rest
    if head == "name later":
        return [(None, "", False), (one.name, first, True), *after]
    if head == "arguments first" and pieces:
        return [rest[0], (one.name, "", True), *rest[1:]]
    if head == "name in pieces":
        at = dice.randint(2, len(one.name) - 1)
        return [(one.name[:at], "", False), (one.name[at:], first, True), *after]
    return [(one.name, first, True), *after]


def _inner(one: Said, name: str | None, piece: str) -> Json:
    named = {} if name is None else {"name": name}
    return (
        {"custom": {**named, "input": piece}} if one.kind == "custom" else {"function": {**named, "arguments": piece}}
    )
