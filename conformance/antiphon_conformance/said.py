"""`Said`: what a stream of Chat Completions chunks says, as far as events must repeat it.

A small reader of its own, so that the rules about faithfulness do not share an error with the engine. It reads choice
0 only, up to the first error object. Source: GRAMMAR, "From chunks to items" and "Endings".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal, NamedTuple, Protocol

from .attribution import CallBook, CallSaid, Fragment
from .read import Json, listed, mapping, mappings, number, plain, text

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")

Kind = Literal["text", "refusal", "reasoning", "sealed", "call"]


class ProfileFacts(Protocol):
    """What the rules look at in a profile."""

    @property
    def reasoning_fields(self) -> Sequence[str]:
        """The names of delta fields that hold reasoning."""
        ...

    @property
    def finish_reason_optional(self) -> bool:
        """Whether a stream without a finish_reason may be complete."""
        ...

    @property
    def quirks(self) -> Sequence[object]:
        """What is changed between chunk and item."""
        ...


class Piece(NamedTuple):
    """What chunk `at` adds to one kind of output. "sealed" is signed or encrypted reasoning, without text.

    `visible` is whether it opens an item of its kind: white space alone does not.
    """

    at: int
    kind: Kind
    text: str
    visible: bool = True


@dataclass(slots=True)
class Said:
    """All that the chunks say. `odd` is whether something in them cannot be read as a chunk."""

    pieces: list[Piece] = field(default_factory=list[Piece])
    calls: list[CallSaid] = field(default_factory=list[CallSaid])
    finishes: list[str] = field(default_factory=list[str])
    usage: Json | None = None
    error: str | None = None
    count: int = 0
    odd: bool = False
    usage_closes: bool = False  # a chunk with usage and nothing visible came last
    blank_after_usage: bool = False  # and white space came with it or after it
    done: bool | None = None
    finish_optional: bool = False
    quirks: bool = False

    def of(self, *kinds: Kind) -> list[Piece]:
        """Return the pieces of these kinds, in order."""
        return [piece for piece in self.pieces if piece.kind in kinds]

    def joined(self, *kinds: Kind) -> str:
        """Return the text of these kinds."""
        return "".join(piece.text for piece in self.of(*kinds))

    @property
    def visible(self) -> bool:
        """Whether anything was said that makes an item."""
        return any(piece.visible for piece in self.pieces)

    @property
    def unclear(self) -> bool:
        """Whether some fragment of a call may be another's, so that not all can be judged."""
        return any(call.unclear for call in self.calls)

    def runs(self, kinds: dict[Kind, str]) -> list[str]:
        """Return the names that `kinds` gives to the visible pieces, neighbours with one name as one."""
        names = (kinds[piece.kind] for piece in self.pieces if piece.visible and piece.kind in kinds)
        return [name for name, _ in groupby(names)]


def listen(chunks: Iterable[object], profile: ProfileFacts | None = None, done: bool | None = None) -> Said:
    """Return what `chunks` say. `done`: whether `[DONE]` was seen, None where that is unknown."""
    fields = tuple(profile.reasoning_fields) if profile is not None else REASONING_FIELDS
    said = Said(done=done)
    if profile is not None:
        said.finish_optional, said.quirks = profile.finish_reason_optional, bool(profile.quirks)
    reader = _Reader(said, fields)
    for chunk in chunks:
        if not reader.take(plain(chunk)):
            break
    said.calls = reader.calls()
    return said


# What a chunk, and a choice, may say beside its delta and the reason of the finish.
_BESIDE = ("usage", "x_groq", "error")
_IN_CHOICE = frozenset(("usage", "error"))


class _Reader:
    """Takes one chunk after another."""

    def __init__(self, said: Said, fields: tuple[str, ...]) -> None:
        self.said, self.fields = said, fields
        # Most deltas are of text alone; these are the keys of all else.
        self.spoken = frozenset((*fields, "reasoning_details", "thinking_blocks", "refusal"))
        self.rare = self.spoken | {"function_call"}
        self.others = self.rare | {"tool_calls"}
        self.book, self.legacy = CallBook(), CallBook()

    def calls(self) -> list[CallSaid]:
        """Return the calls; those of legacy `function_call` deltas only where there are no others."""
        return self.book.calls or self.legacy.calls

    def take(self, chunk: Json | None) -> bool:
        """Take one chunk, and return whether there may be more."""
        said, at = self.said, self.said.count
        said.count += 1
        if chunk is None:
            said.odd = True
            return True
        if self._take_short(at, chunk):
            return True
        before = len(said.pieces)
        choices = mappings(chunk.get("choices"))
        nothing: Json = {}
        first = next((one for one in choices if not number(one.get("index"))), nothing)
        if first:
            self._choice(at, first)
        new = said.pieces[before:]
        self._usage(chunk, first, bool(choices), any(piece.visible for piece in new), bool(new))
        error = chunk.get("error") or first.get("error")
        if error:
            said.error = _message(error)
        return said.error is None

    def _take_short(self, at: int, chunk: Json) -> bool:
        """Take a chunk of the commonest forms, one choice with a text or with calls and nothing beside it, and return
        whether it is one."""
        delta = self._only_delta(chunk)
        if delta is None:
            return False
        content, calls = delta.get("content"), delta.get("tool_calls")
        if content and not calls and content.__class__ is str:
            self._add(Piece(at, "text", content, not content.isspace()))
        elif calls and (content is None or content == ""):
            begun, new = self._calls(at, self.book, calls)
            self._add(*begun, *new)
        else:
            return False
        return True

    def _only_delta(self, chunk: Json) -> Any:
        """Return the delta of a chunk that has one choice and says nothing beside it, None for any other."""
        choices: Any = chunk.get("choices")
        if choices.__class__ is not list or len(choices) != 1 or any(map(chunk.get, _BESIDE)):
            return None
        choice: Any = choices[0]
        if choice.__class__ is not dict or not _IN_CHOICE.isdisjoint(choice) or choice.get("finish_reason"):
            return None
        delta: Any = choice.get("delta")
        if delta.__class__ is not dict or number(choice.get("index")) or _says(delta, self.rare):
            return None
        return delta

    def _add(self, *pieces: Piece) -> None:
        """Keep what a chunk says that has no usage."""
        said = self.said
        said.pieces += pieces
        if any(piece.visible for piece in pieces):
            said.usage_closes = said.blank_after_usage = False
        elif said.usage_closes:
            said.blank_after_usage = True

    def _choice(self, at: int, choice: Json) -> None:
        self._delta(at, mapping(choice.get("delta" if isinstance(choice.get("delta"), dict) else "message")))
        finish = text(choice.get("finish_reason")).lower()
        if finish:
            self.said.finishes.append(finish)

    def _delta(self, at: int, delta: Json) -> None:
        content = delta.get("content")
        if isinstance(content, str) and not _says(delta, self.others):
            if content:
                self.said.pieces.append(_spoken(at, "text", content))
            return
        silent = not content and not isinstance(content, int | float) and not _says(delta, self.spoken)
        others = [] if silent else list(_content(at, delta, self.fields))
        known = len(self.book.calls)
        begun, new = self._calls(at, self.book, delta.get("tool_calls"))
        if not self.book.calls and (legacy := delta.get("function_call")):
            old, young = self._calls(at, self.legacy, [{"index": 0, "function": legacy}])
            begun, new = [*begun, *old], [*new, *young]
        # Sealed reasoning never splits what is open.
        if any(piece.visible and piece.kind != "sealed" for piece in others):
            self.book.overtake(*self.book.calls[known:])
        self.said.pieces += [*begun, *others, *new]

    def _calls(self, at: int, book: CallBook, calls: object) -> tuple[list[Piece], list[Piece]]:
        """Give fragments to their calls. Return the pieces of calls that were there before, and those of new ones."""
        known, begun, new = len(book.calls), list[Piece](), list[Piece]()
        for fragment in _fragments(calls):
            call = book.take(fragment)
            if call is not None and (fragment.id or fragment.name or fragment.arguments.strip()):
                (begun if call.number < known else new).append(Piece(at, "call", ""))
        return begun, new

    def _usage(self, chunk: Json, choice: Json, choices: bool, visible: bool, blank: bool) -> None:
        usage: Json | None = None
        if "usage" in chunk or "x_groq" in chunk or "usage" in choice:
            places = (chunk.get("usage"), mapping(chunk.get("x_groq")).get("usage"), choice.get("usage"))
            usage = next((found for found in map(counted, places) if found), None)
        if usage:
            self.said.usage = usage
        if visible:
            self.said.usage_closes = self.said.blank_after_usage = False
        elif usage and (self.said.visible or not choices):
            self.said.usage_closes = True
        if self.said.usage_closes and not visible and (blank or mapping(choice.get("delta")).get("tool_calls")):
            self.said.blank_after_usage = True


def _says(delta: Json, keys: frozenset[str]) -> bool:
    """Whether a delta has something under one of these keys."""
    return not keys.isdisjoint(delta) and any(map(delta.get, keys))


def _spoken(at: int, kind: Kind, said: str) -> Piece:
    """Return the piece that holds this text."""
    return Piece(at, kind, said, bool(said) and not said.isspace())


def counted(usage: object) -> Json | None:
    """Return a usage that has a count, None for any other."""
    found = mapping(usage)
    return found if any(number(found.get(key)) is not None for key in ("prompt_tokens", "completion_tokens")) else None


def _message(error: object) -> str:
    return text(mapping(error).get("message")) or text(error) or "an error"


def _fragments(calls: object) -> Iterator[Fragment]:
    """Yield what each entry of `tool_calls` says."""
    for call in mappings(calls):
        index = call.get("index")
        place = int(index) if isinstance(index, str) and index.isdecimal() else number(index)
        custom = isinstance(call.get("custom"), dict)
        inner = mapping(call.get("custom" if custom else "function"))
        given = inner.get("input" if custom else "arguments")
        arguments = given if isinstance(given, str) else "" if given is None else json.dumps(given)
        yield Fragment(place, text(call.get("id")), text(inner.get("name")), arguments, custom)


def _content(at: int, delta: Json, fields: tuple[str, ...]) -> Iterator[Piece]:
    """Yield what a delta says beside calls: reasoning, refusal, text."""
    sealed, reasoning = _reasoning(delta, fields)
    if sealed:
        yield Piece(at, "sealed", "")
    refusal = text(delta.get("refusal")) + "".join(text(one.get("refusal")) for one in mappings(delta.get("content")))
    for kind, said in (("reasoning", reasoning), ("refusal", refusal), ("text", _text(delta.get("content")))):
        if said:
            yield _spoken(at, kind, said)  # type: ignore[arg-type]  # a tuple of literals is read as str


def _text(content: object) -> str:
    """Return the text of `content`: a string, a list of typed parts, or the digits of a number."""
    if isinstance(content, int | float) and not isinstance(content, bool):
        return json.dumps(content)
    parts = [one for one in mappings(content) if one.get("type") in ("text", "output_text", None)]
    return text(content) or "".join(text(part.get("text")) for part in parts)


def _reasoning(delta: Json, fields: tuple[str, ...]) -> tuple[bool, str]:
    """Return whether a piece is signed or encrypted, and the text; a text that is in two places counts once."""
    if isinstance(delta.get("content"), str) and not any(
        map(delta.get, (*fields, "reasoning_details", "thinking_blocks"))
    ):
        return False, ""
    details = mappings(delta.get("reasoning_details"))
    blocks = mappings(delta.get("thinking_blocks"))
    told = [text(delta.get(name)) for name in fields]
    told.append("".join(text(one.get("text")) or text(one.get("summary")) for one in details))
    told.append("".join(text(one.get("thinking")) for one in blocks))
    told.append("".join(_thinking(one) for one in mappings(delta.get("content"))))
    sealed = any(one.get("data") or one.get("signature") for one in (*details, *blocks))
    return sealed, "".join(dict.fromkeys(told))


def _thinking(part: Json) -> str:
    """Return the reasoning in one typed content part (Mistral: `thinking`; Databricks: `reasoning`)."""
    if part.get("type") not in ("thinking", "reasoning"):
        return ""
    found = next((part[key] for key in ("thinking", "summary", "text") if part.get(key)), None)
    return text(found) or "".join(text(one) or text(mapping(one).get("text")) for one in listed(found))
