"""Earlier reasoning, on its way back to the backend that made it.

A reasoning item holds text (of its content, else of its summary), and signed or encrypted pieces: in `provider_data`,
or, for clients that drop that, sealed in `encrypted_content`. Each kind of replay takes what its backends take; what
another family signed or encrypted goes to nobody else, nor does the text beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from antiphon.errors import BadInput
from antiphon.profile import Profile
from antiphon.stream.chunk import fields, is_object, many, plain, text_of, word
from antiphon.stream.details import is_signed, opaque, unsealed

from .content import Scope, joined
from .entries import Thought
from .items import BESIDE
from .read import Json, settled
from .report import Place, path_of

FAMILY = "family"  # in provider_data: whose reasoning it is
# Kimi and DeepSeek V4 refuse a history with tools whose assistant messages have no reasoning; DeepSeek V4 Pro refuses
# "" too. Source: github.com/NousResearch/hermes-agent/pull/18263.
NOTHING_THOUGHT = " "
# What Google says to send with the first call of a message that has no signature of its own.
# Source: ai.google.dev/gemini-api/docs/thought-signatures.
UNSIGNED = {"google": {"thought_signature": "skip_thought_signature_validator"}}
# Source: openrouter.ai/docs, "Preserving reasoning"
DETAILS = frozenset({"reasoning.text", "reasoning.summary", "reasoning.encrypted"})
TEXTS = frozenset({"reasoning_content", "reasoning"})  # kinds of replay in a field that holds the text
EXTRAS = BESIDE  # what came beside a call

Piece: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Memory:
    """What a reasoning item holds."""

    text: str
    pieces: tuple[Piece, ...]  # for replay, in order
    family: str  # "": unknown
    locked: bool  # it has encrypted content that is not ours to read
    path: str

    @property
    def is_open(self) -> bool:
        """Whether its text was neither signed nor encrypted by anybody."""
        return not self.locked and not any(is_signed(piece) for piece in self.pieces)


def family_of(profile: Profile) -> str:
    """Return whose reasoning a backend of that profile makes."""
    return profile.family or profile.name


def replayed(thoughts: Sequence[Thought], riding: Sequence[Json], scope: Scope) -> dict[str, Any]:
    """Return the fields of an assistant message that carry its reasoning. Thoughts that no field carries are reported.

    `riding`: the `provider_data` of its calls. For "typed_content" the one field is `content`, a list of the thinking parts.
    """
    family = family_of(scope.profile)
    memories: list[Memory] = []
    for thought in thoughts:
        memory = remember(thought, scope)
        if memory.family and memory.family != family:
            scope.report.ignored(memory.path, "reasoning", f"it is of {memory.family}, not of {family}")
        else:
            memories.append(memory)
    return REPLAYS[scope.profile.reasoning_replay](memories, riding, scope)


def usual_text(thoughts: Sequence[Thought], family: str) -> str:
    """Return the text of reasoning in its usual form, which nobody signed; "" where there is none of it, or another."""
    texts: list[str] = []
    for thought in thoughts:
        item = thought.item
        data: Any = item.get("provider_data")
        if item.get("encrypted_content") or (data and not (data.__class__ is dict and data == {FAMILY: family})):
            return ""
        parts: Any = item.get("content") or item.get("summary")
        if parts.__class__ is not list or not parts:
            return ""
        for part in parts:
            text = part.get("text") if part.__class__ is dict else None
            if text.__class__ is not str or not text:
                return ""
            texts.append(text)
    return texts[0] if len(texts) == 1 else "\n".join(texts)


def usual_details(thoughts: Sequence[Thought], family: str) -> list[Piece]:
    """Return the pieces of reasoning in their usual form, each reasoning item with its own; none where it has another."""
    pieces: list[Piece] = []
    for thought in thoughts:
        data: Any = thought.item.get("provider_data")
        if data.__class__ is not dict or "thinking_blocks" in data or data.get(FAMILY, family) != family:
            return []
        given: Any = data.get("reasoning_details")
        if given.__class__ is not list or not given:
            return []
        for piece in given:
            if piece.__class__ is not dict or piece.get("type") not in DETAILS:
                return []
        pieces += given
    return pieces if len(pieces) == 1 else list(_once(pieces, _is_detail))


def sealed_for(family: str, pieces: Iterable[Json]) -> str:
    """Return `encrypted_content` that holds all of `pieces` and whose they are; `unsealed` reads it back."""
    return opaque([{"type": FAMILY, FAMILY: family}, *pieces])


def remember(thought: Thought, scope: Scope) -> Memory:
    """Return what a reasoning item holds."""
    item, path = settled(thought.item), thought.path
    data = fields(item.get("provider_data"))
    given = (*many(data.get("reasoning_details")), *many(data.get("thinking_blocks")))
    pieces: list[Piece] = [one if type(one) is dict else plain(one) for one in given if is_object(one)]
    sealed, locked = item.get("encrypted_content"), False
    if isinstance(sealed, str) and sealed and not pieces:
        try:
            read = unsealed(sealed)
        except BadInput:
            scope.report.dropped(f"{path}.encrypted_content", "sealed reasoning", "it is damaged")
            read = None
        pieces, locked = read or [], read is None
    family = next((word(piece[FAMILY]) for piece in pieces if piece.get("type") == FAMILY), word(data.get(FAMILY)))
    kept = tuple(piece for piece in pieces if piece.get("type") != FAMILY)
    text = _joined_text(item.get("content")) or _joined_text(item.get("summary"))
    return Memory(text, kept, family, locked, path)


def call_fields(data: Json, place: Place, scope: Scope, *, first: bool) -> dict[str, Any]:
    """Return the fields of a tool call that carry its thought signature, which came in its `provider_data`.

    `first`: it is the first of its message.
    """
    family = word(data.get(FAMILY))
    ours = not family or family == family_of(scope.profile)
    found = {key: plain(data[key]) for key in EXTRAS if data.get(key)} if ours else {}
    signature = data.get("thought_signature")
    if not found and signature and ours:
        return {"extra_content": {"google": {"thought_signature": signature}}}
    if not found and first:
        path = path_of(place)
        scope.report.add("made", path, "a call without thought signature", "a signature that says so", _SIGNED)
        return {"extra_content": UNSIGNED}
    return found


# --- the kinds of replay -------------------------------------------------------------------------------------------


def _none(memories: Sequence[Memory], riding: Sequence[Json], scope: Scope) -> dict[str, Any]:
    _leave(memories, scope, f"profile {scope.profile.name!r} takes no reasoning back")
    return {}


def _text_in(field: str) -> Replay:
    """Return the replay in a field that holds the text."""

    def replay(memories: Sequence[Memory], riding: Sequence[Json], scope: Scope) -> dict[str, Any]:
        text = joined(memory.text for memory in _open(memories, scope))
        return {field: text} if text else {}

    return replay


def _details(memories: Sequence[Memory], riding: Sequence[Json], scope: Scope) -> dict[str, Any]:
    """OpenRouter's form: the pieces, those of the calls too; text without pieces in `reasoning`.

    Source: openrouter.ai/docs, "Preserving reasoning".
    """
    beside = [plain(piece) for data in riding for piece in many(data.get("reasoning_details")) if is_object(piece)]
    pieces = list(_once([*(piece for memory in memories for piece in memory.pieces), *beside], _is_detail))
    bare = [memory for memory in memories if not any(map(_is_detail, memory.pieces))]
    text = joined(memory.text for memory in _open(bare, scope))
    return {**({"reasoning": text} if text else {}), **({"reasoning_details": pieces} if pieces else {})}


def _blocks(memories: Sequence[Memory], riding: Sequence[Json], scope: Scope) -> dict[str, Any]:
    """LiteLLM's form of Anthropic's blocks. One without signature would be refused."""
    pieces = list(_once([piece for memory in memories for piece in memory.pieces], _is_block))
    bare = [memory for memory in memories if not any(map(_is_block, memory.pieces))]
    _leave(bare, scope, "it has no signature of this family")
    return {"thinking_blocks": pieces} if pieces else {}


def _typed(memories: Sequence[Memory], riding: Sequence[Json], scope: Scope) -> dict[str, Any]:
    """Mistral's form: parts of type `thinking` in the content.

    Source: docs.mistral.ai, "Reasoning"; recordings mistral/*.
    """
    parts: list[Piece] = []
    for memory in memories:
        typed = list(_once(memory.pieces, _is_typed))
        if typed:
            parts.extend(typed)
        elif memory.is_open and memory.text:
            parts.append({"type": "thinking", "thinking": [{"type": "text", "text": memory.text}]})
        else:
            _leave([memory], scope, _FOREIGN)
    return {"content": parts} if parts else {}


Replay: TypeAlias = Callable[[Sequence[Memory], Sequence[Json], Scope], dict[str, Any]]
REPLAYS: dict[str, Replay] = {
    "none": _none,
    "reasoning_content": _text_in("reasoning_content"),
    "reasoning": _text_in("reasoning"),
    "reasoning_details": _details,
    "thinking_blocks": _blocks,
    "typed_content": _typed,
}


def _open(memories: Iterable[Memory], scope: Scope) -> list[Memory]:
    """Return those whose text may go back as text. What is ours by name may, whatever was signed beside it."""
    kept: list[Memory] = []
    for memory in memories:
        if memory.text and not memory.locked and (memory.is_open or memory.family):
            kept.append(memory)
        else:
            _leave([memory], scope, _FOREIGN if memory.text or memory.locked else "it has no text")
    return kept


def _leave(memories: Iterable[Memory], scope: Scope, why: str) -> None:
    for memory in memories:
        scope.report.ignored(memory.path, "reasoning", why)


def _once(pieces: Iterable[Piece], fits: Callable[[Piece], bool]) -> Iterable[Piece]:
    """Yield the pieces that fit; what is signed or encrypted alike, once."""
    seen: set[str] = set()
    for piece in pieces:
        secret = word(piece.get("data")) or word(piece.get("signature"))
        if fits(piece) and not (secret and secret in seen):
            seen.add(secret)
            yield piece


def _is_detail(piece: Json) -> bool:
    return word(piece.get("type")).startswith("reasoning.")


def _is_block(piece: Json) -> bool:
    kind = piece.get("type")
    signed = kind == "thinking" and isinstance(piece.get("thinking"), str) and is_signed(piece)
    return signed or (kind == "redacted_thinking" and is_signed(piece))


def _is_typed(piece: Json) -> bool:
    return piece.get("type") == "thinking" and isinstance(piece.get("thinking"), list)


def _joined_text(parts: Any) -> str:
    return joined(text_of(part) for part in many(parts))


_FOREIGN = "it was signed or encrypted by another family"
_SIGNED = "the backend refuses the first call of a message without one"
