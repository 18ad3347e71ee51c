"""`Said`: what a stream of Chat Completions chunks says, as far as events must repeat it.

A small reader of its own, so that the rules about faithfulness do not share an error with the engine. It reads choice
0 only, up to the first error object. Source: GRAMMAR, "From chunks to items" and "Endings".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal, Protocol, TypeAlias

from .attribution import CallBook, CallSaid, Fragment
from .counts import counted, counts
from .read import Json, listed, mapping, mappings, plain_all, text, whole

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")

Kind = Literal["text", "refusal", "reasoning", "sealed", "call"]
# family of a text in items -> what chunks say it as
SAID_AS: dict[str, Kind] = {
    "output_text": "text",
    "refusal": "refusal",
    "reasoning_text": "reasoning",
    "reasoning_summary_text": "reasoning",
}


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


# What a chunk adds to one kind of output: its place, the kind ("sealed" is signed or encrypted reasoning, without text),
# the text, and whether it opens an item of its kind, as white space alone does not. A long stream has one for each chunk,
# so it is a plain tuple, which the collector need not walk.
Piece: TypeAlias = tuple[int, Kind, str, bool]
_VISIBLE = itemgetter(3)


@dataclass(slots=True)
class Said:
    """All that the chunks say. `odd` is whether something in them cannot be read as a chunk."""

    pieces: list[Piece] = field(default_factory=list[Piece])
    calls: list[CallSaid] = field(default_factory=list[CallSaid])
    finishes: list[str] = field(default_factory=list[str])
    given: Json | None = None  # the last usage that counts something, as it came
    visible: bool = False  # anything was said that makes an item
    error: str | None = None
    count: int = 0
    odd: bool = False
    usage_closes: bool = False  # a chunk with usage and nothing visible came last
    blank_after_usage: bool = False  # and white space came with it or after it
    done: bool | None = None
    finish_optional: bool = False
    quirks: bool = False
    _joined: dict[tuple[Kind, ...], str] = field(default_factory=dict[tuple[Kind, ...], str])
    _turns: list[Kind] | None = None

    def of(self, *kinds: Kind) -> list[Piece]:
        """Return the pieces of these kinds, in order."""
        return [piece for piece in self.pieces if piece[1] in kinds]

    def joined(self, *kinds: Kind) -> str:
        """Return the text of these kinds. It is joined once: nothing is said any more."""
        if kinds not in self._joined:
            self._joined[kinds] = "".join([said for _, kind, said, _ in self.pieces if kind in kinds])
        return self._joined[kinds]

    @property
    def usage(self) -> Json | None:
        """The counts of the last usage, None where there is none."""
        return counted(self.given)

    @property
    def unclear(self) -> bool:
        """Whether some fragment of a call may be another's, so that not all can be judged."""
        return any(call.unclear for call in self.calls)

    def runs(self, kinds: dict[Kind, str]) -> list[str]:
        """Return the names that `kinds` gives to the visible pieces, neighbours with one name as one."""
        if self._turns is None:
            seen: Iterator[Kind] = (kind for _, kind, _, visible in self.pieces if visible)
            self._turns = [kind for kind, _ in groupby(seen)]
        return [name for name, _ in groupby(kinds[kind] for kind in self._turns if kind in kinds)]


def listen(chunks: Iterable[object], profile: ProfileFacts | None = None, done: bool | None = None) -> Said:
    """Return what `chunks` say. `done`: whether `[DONE]` was seen, None where that is unknown."""
    fields = tuple(profile.reasoning_fields) if profile is not None else REASONING_FIELDS
    said = Said(done=done)
    if profile is not None:
        said.finish_optional, said.quirks = profile.finish_reason_optional, bool(profile.quirks)
    reader = _Reader(said, fields)
    for chunk in plain_all(chunks):
        if not reader.take(chunk):
            break
    said.calls = reader.calls()
    return said


# What `content` may be where a delta says nothing by it: the number 0 is a text.
_NO_NUMBER = (str, type(None))


class _Reader:
    """Takes one chunk after another."""

    def __init__(self, said: Said, fields: tuple[str, ...]) -> None:
        self.said, self.fields = said, fields
        # A delta mostly has one key that says something: these are the texts, and what each is.
        self.kinds: dict[str, Kind] = {"content": "text", "refusal": "refusal", **dict.fromkeys(fields, "reasoning")}
        self.reasons = frozenset((*fields, "reasoning_details", "thinking_blocks", "provider_specific_fields"))
        # Most other deltas are of text, too; these are the keys of all else.
        self.spoken = self.reasons | {"refusal"}
        self.others = self.spoken | {"function_call", "tool_calls"}
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
        choices = mappings(chunk.get("choices"))
        nothing: Json = {}
        first = next((one for one in choices if not whole(one.get("index"))), nothing)
        new = self._choice(at, first) if first else []
        said.pieces += new
        usage = self._usage(chunk, first)
        blank = bool(new or mapping(first.get("delta")).get("tool_calls"))
        self._end(any(map(_VISIBLE, new)), usage=usage, choices=bool(choices), blank=blank)
        error = chunk.get("error") or first.get("error") or mapping(chunk.get("x_groq")).get("error")
        if error or (not choices and (error := _bare_error(chunk))):
            said.error = _message(error)
        return said.error is None

    def _take_short(self, at: int, chunk: Json) -> bool:
        """Take a chunk of the commonest forms, one choice whose delta says one thing and nothing beside it but usage,
        and return whether it is one."""
        delta = self._only_delta(chunk)
        if delta is None or delta.get("content", "").__class__ not in _NO_NUMBER:
            return False
        told = [key for key, value in delta.items() if value and key != "role"]
        key = told[0] if len(told) == 1 else ""
        if key in self.kinds and delta[key].__class__ is str:
            self._add(chunk, [_spoken(at, self.kinds[key], delta[key])], opens=key != "content")
        elif key == "tool_calls":
            self._add(chunk, [(at, "call", "", True)] * sum(self._calls(self.book, delta[key])), calls=True)
        elif told and self.reasons.issuperset(told):
            self._add(chunk, list(_content(at, delta, self.fields)), opens=True)
        else:
            return False
        return True

    def _only_delta(self, chunk: Json) -> Any:
        """Return the delta of a chunk that has one choice and says nothing beside it but usage, None for any other."""
        choices: Any = chunk.get("choices")
        if choices.__class__ is not list or len(choices) != 1:
            return None
        if chunk.get("x_groq") or chunk.get("error"):
            return None
        choice: Any = choices[0]
        if choice.__class__ is not dict or choice.get("finish_reason") or "usage" in choice or "error" in choice:
            return None
        index, delta = choice.get("index"), choice.get("delta")
        return None if delta.__class__ is not dict or (index and whole(index)) else delta

    def _add(self, chunk: Json, pieces: list[Piece], *, opens: bool = False, calls: bool = False) -> None:
        """Keep what a chunk says, and its usage. `opens` is whether it may begin another item than a call's."""
        self.said.pieces += pieces
        visible = any(map(_VISIBLE, pieces))
        if visible and opens:
            self._open(pieces)
        usage = bool(chunk.get("usage")) and self._counts(chunk["usage"])
        self._end(visible, usage=usage, choices=True, blank=calls or bool(pieces))

    def _open(self, pieces: list[Piece], known: int | None = None) -> None:
        """Close the calls that are complete where pieces begin an item, but for those after the first `known`. Sealed
        reasoning never splits what is open."""
        if self.book.calls and any(visible and kind != "sealed" for _, kind, _, visible in pieces):
            self.book.overtake(*([] if known is None else self.book.calls[known:]))

    def _choice(self, at: int, choice: Json) -> list[Piece]:
        finish = text(choice.get("finish_reason")).lower()
        if finish:
            self.said.finishes.append(finish)
        return self._delta(at, mapping(choice.get("delta" if isinstance(choice.get("delta"), dict) else "message")))

    def _delta(self, at: int, delta: Json) -> list[Piece]:
        """Return what a delta says, and give fragments to their calls."""
        content = delta.get("content")
        if isinstance(content, str) and not _says(delta, self.others):
            return [_spoken(at, "text", content)] if content else []
        silent = not content and not isinstance(content, int | float) and not _says(delta, self.spoken)
        others = [] if silent else list(_content(at, delta, self.fields))
        known = len(self.book.calls)
        begun, new = self._calls(self.book, delta.get("tool_calls"))
        if not self.book.calls and (legacy := delta.get("function_call")):
            begun, new = self._calls(self.legacy, [{"index": 0, "function": legacy}])
        self._open(others, known)
        told: list[Piece] = [(at, "call", "", True)]
        return [*told * begun, *others, *told * new]

    def _calls(self, book: CallBook, calls: object) -> tuple[int, int]:
        """Give fragments to their calls. Return how many are of calls that were there before, and how many of others."""
        known = len(book.calls)
        if _goes_on(book, calls):
            return 1, 0
        told = [call.number for one in mappings(calls) if (call := book.take(_fragment(one)))]
        new = len([number for number in told if number >= known])
        return len(told) - new, new

    def _usage(self, chunk: Json, choice: Json) -> bool:
        """Keep the usage of a chunk, in any of its places, and return whether there is one."""
        if "usage" not in chunk and "x_groq" not in chunk and "usage" not in choice:
            return False
        places = (chunk.get("usage"), mapping(chunk.get("x_groq")).get("usage"), choice.get("usage"))
        return any(map(self._counts, places))

    def _counts(self, usage: object) -> bool:
        """Keep a usage that counts something, and return whether it does."""
        found = mapping(usage)
        if not counts(found):
            return False
        self.said.given = found
        return True

    def _end(self, visible: bool, *, usage: bool, choices: bool, blank: bool) -> None:
        """Keep whether the usage came last so far; `blank` is whether the chunk has white space or a call that says
        nothing."""
        said = self.said
        if visible:
            said.visible, said.usage_closes, said.blank_after_usage = True, False, False
            return
        if usage and (said.visible or not choices):
            said.usage_closes = True
        if said.usage_closes and blank:
            said.blank_after_usage = True


def _says(delta: Json, keys: frozenset[str]) -> bool:
    """Whether a delta has something under one of these keys."""
    return not keys.isdisjoint(delta) and any(map(delta.get, keys))


def _spoken(at: int, kind: Kind, said: str) -> Piece:
    """Return the piece that holds this text."""
    return at, kind, said, bool(said) and not said.isspace()


def _bare_error(chunk: Json) -> object:
    """Return what a chunk without choices reports as an error: itself (vLLM, FastAPI, gateways), one of its `errors`."""
    if chunk.get("object") == "error":
        return chunk
    if chunk.get("choices") is not None or chunk.get("usage"):
        return None
    if errors := listed(chunk.get("errors")):
        return errors[0]
    told = isinstance(chunk.get("message"), str) and any(map(chunk.get, ("code", "status", "status_code", "type")))
    return chunk if told or chunk.get("detail") else None


def _message(error: object) -> str:
    held = mapping(error)
    return text(held.get("message")) or text(held.get("detail")) or text(error) or "an error"


def _goes_on(book: CallBook, calls: Any) -> bool:
    """Take what most deltas of a call are, more of the arguments of one that is known by its index, and return whether
    it is that."""
    if calls.__class__ is not list or len(calls) != 1 or calls[0].__class__ is not dict:
        return False
    call: Json = calls[0]
    function: Any = call.get("function")
    slot: Any = call.get("index")
    if function.__class__ is not dict or slot.__class__ is not int or call.get("id") or "custom" in call:
        return False
    arguments: Any = function.get("arguments")
    if function.get("name") or arguments.__class__ is not str or not arguments.strip():
        return False
    return book.go_on(slot, arguments) is not None


def _fragment(call: Json) -> Fragment:
    """Return what an entry of `tool_calls` says."""
    custom = isinstance(call.get("custom"), dict)
    inner = mapping(call.get("custom" if custom else "function"))
    given = inner.get("input" if custom else "arguments")
    arguments = given if isinstance(given, str) else "" if given is None else json.dumps(given)
    return Fragment(whole(call.get("index")), text(call.get("id")), text(inner.get("name")), arguments, custom)


def _content(at: int, delta: Json, fields: tuple[str, ...]) -> Iterator[Piece]:
    """Yield what a delta says beside calls: reasoning, refusal, text."""
    content = delta.get("content")
    parts = mappings(content) if content else []
    sealed, reasoning = _reasoning(delta, fields, parts)
    if sealed:
        yield at, "sealed", "", True
    if reasoning:
        yield _spoken(at, "reasoning", reasoning)
    refusal = text(delta.get("refusal"))
    if parts:
        refusal += "".join([text(one.get("refusal")) for one in parts])
    if refusal:
        yield _spoken(at, "refusal", refusal)
    if said := _text(content, parts):
        yield _spoken(at, "text", said)


def _text(content: object, parts: list[Json]) -> str:
    """Return the text of `content`: a string, a list of typed parts, or the digits of a number."""
    if isinstance(content, int | float) and not isinstance(content, bool):
        return json.dumps(content)
    said = (text(one.get("text")) for one in parts if one.get("type") in ("text", "output_text", None))
    return "".join(said) if parts else text(content)


def _reasoning(delta: Json, fields: tuple[str, ...], parts: list[Json]) -> tuple[bool, str]:
    """Return whether a piece is signed or encrypted, and the text; a text that is in two places counts once."""
    told = [text(value) or text(mapping(value).get("content")) for field in fields if (value := delta.get(field))]
    details = mappings(given) if (given := delta.get("reasoning_details")) else []
    blocks = _blocks(delta)
    if details:
        told.append("".join([text(one.get("text")) or text(one.get("summary")) for one in details]))
    if blocks:
        told.append("".join([text(one.get("thinking")) for one in blocks]))
    if parts:
        told.append("".join(map(_thinking, parts)))
    sealed = any(one.get("data") or one.get("signature") for one in (*details, *blocks))
    return sealed, "".join(dict.fromkeys(told))


def _blocks(delta: Json) -> list[Json]:
    """Return the thinking blocks of a delta. LiteLLM has them in either place."""
    own = mappings(given) if (given := delta.get("thinking_blocks")) else []
    nested = delta.get("provider_specific_fields")
    return own or (mappings(mapping(nested).get("thinking_blocks")) if nested else [])


def _thinking(part: Json) -> str:
    """Return the reasoning in one typed content part (Mistral: `thinking`; Databricks: `reasoning`)."""
    if part.get("type") not in ("thinking", "reasoning"):
        return ""
    found = next((part[key] for key in ("thinking", "summary", "text") if part.get(key)), None)
    return text(found) or "".join(text(one) or text(mapping(one).get("text")) for one in listed(found))
