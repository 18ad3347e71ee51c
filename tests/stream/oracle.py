"""What a list of chunks holds, read in the plainest way: no items, no order, no liveness, only sums.

It is a second, independent reading of choice 0, to compare the events with.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from .summary import is_list

Json: TypeAlias = dict[str, Any]

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")

# finish word -> the ending, the gravest first; other words are completed
ENDINGS = {
    "error": "failed",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "length": "max_output_tokens",
    "max_tokens": "max_output_tokens",
}
GRAVEST = ("failed", "content_filter", "max_output_tokens", "completed")


@dataclass
class Call:
    """A tool call as its fragments give it."""

    id: str = ""
    index: Any = None
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])

    @property
    def arguments(self) -> str:
        """The pieces joined; a first piece of exactly `{}` is no piece if more comes."""
        first, *rest = self.pieces or [""]
        return "".join(rest) if first == "{}" and rest else "".join(self.pieces)


@dataclass
class Held:
    """What the chunks hold, and the ending they imply: completed, failed, or the reason of an incomplete."""

    text: str = ""
    refusal: str = ""
    reasoning: str = ""
    calls: list[Call] = field(default_factory=list[Call])
    ending: str = ""


def held(chunks: Iterable[Any], done: bool = False, malformed: bool = False) -> Held:
    """Return what the chunks hold. `done`: `[DONE]` was seen; `malformed`: a line was not JSON."""
    read = list(_until_error(chunks))
    whole = Held()
    for delta in map(_delta, read):
        texts, thoughts = _content(delta.get("content"))
        whole.text += texts
        whole.refusal += delta.get("refusal") or ""
        whole.reasoning += _reasoning(delta, thoughts)
        _take_calls(delta, whole.calls)
    whole.ending = "failed" if malformed or _is_error(read[-1:]) else implied_ending(read, done)
    return whole


def json_object(value: Any) -> Json:
    """Return the object, or an empty one for null."""
    return value or {}


def json_list(value: Any) -> list[Any]:
    """Return the list, or an empty one for null."""
    return value or []


def _until_error(chunks: Iterable[Any]) -> Iterator[Json]:
    for chunk in chunks:
        yield chunk
        if _is_error([chunk]):
            return


def _is_error(chunks: Sequence[Json]) -> bool:
    return any(chunk.get("error") for chunk in chunks)


def _choice(chunk: Json) -> Json:
    ours = [one for one in json_list(chunk.get("choices")) if one.get("index") in (None, 0)]
    return json_object(ours and ours[0])


def _delta(chunk: Json) -> Json:
    choice = _choice(chunk)
    return json_object(choice["delta"] if "delta" in choice else choice.get("message"))


def _content(content: Any) -> tuple[str, str]:
    """Return text and thinking of a content: a string, or a list of typed parts."""
    if not is_list(content):
        return content or "", ""
    texts: list[str] = [part["text"] for part in content if part["type"] == "text"]
    nested: list[str] = [piece["text"] for part in content if part["type"] == "thinking" for piece in part["thinking"]]
    return "".join(texts), "".join(nested)


def _reasoning(delta: Json, thoughts: str) -> str:
    """Return the reasoning of one delta: what several fields say alike, once."""
    entries = json_list(delta.get("reasoning_details"))
    blocks = json_list(delta.get("thinking_blocks"))
    said: list[str] = [delta.get(name) or "" for name in REASONING_FIELDS]
    said.append("".join(entry.get("text") or entry.get("summary") or "" for entry in entries))
    said.append("".join(block.get("thinking") or "" for block in blocks))
    return "".join(dict.fromkeys([*said, thoughts]))


def _take_calls(delta: Json, calls: list[Call]) -> None:
    for fragment in json_list(delta.get("tool_calls")):
        call = _owner(fragment, calls)
        function = json_object(fragment.get("function") or fragment.get("custom"))
        call.name = call.name or function.get("name") or ""
        call.pieces += [piece for piece in (_argument(function),) if piece]
    legacy = delta.get("function_call")
    if legacy and not delta.get("tool_calls"):
        _take_calls({"tool_calls": [{"index": 0, "function": legacy}]}, calls)


def _owner(fragment: Json, calls: list[Call]) -> Call:
    """Return the call that a fragment belongs to: by id, else by index, else the last; a new one where there is none."""
    id, index, name = fragment.get("id") or "", fragment.get("index"), json_object(fragment.get("function")).get("name")
    by_id = [call for call in calls if id and call.id == id]
    by_index = [call for call in calls if not id and index is not None and call.index == index]
    last = calls if not id and index is None and not name else []
    if found := by_id or by_index or last:
        return found[-1]
    calls.append(Call(id, index))
    return calls[-1]


def _argument(function: Json) -> str:
    given = function.get("arguments", function.get("input"))
    return given or "" if isinstance(given, str | None) else json.dumps(given)


def implied_ending(chunks: Sequence[Json], done: bool = False, optional: bool = False) -> str:
    """Return the ending that finish words imply, or where there is none, the end of the stream."""
    words = [str(_choice(chunk).get("finish_reason") or "").lower() for chunk in chunks]
    found = {ENDINGS.get(word, "completed") for word in words if word}
    if found:
        return min(found, key=GRAVEST.index)
    shown = [_shows(chunk) for chunk in chunks]
    closed = (done and bool(chunks)) or _closed_by_usage(chunks, shown) or (optional and any(shown))
    return "completed" if closed else "failed"


def _closed_by_usage(chunks: Sequence[Json], shown: Sequence[bool]) -> bool:
    """Whether usage came after all that is visible; before anything is, only usage without choices counts."""
    after = max((n for n, one in enumerate(shown) if one), default=-1) + 1
    usages = [chunk for chunk in chunks[after:] if chunk.get("usage") or json_object(chunk.get("x_groq")).get("usage")]
    return any(any(shown) or not chunk.get("choices") for chunk in usages)


def _shows(chunk: Json) -> bool:
    """Whether something of a chunk is visible: text, refusal, reasoning, or a fragment of a call."""
    delta = _delta(chunk)
    texts, thoughts = _content(delta.get("content"))
    visible = texts + (delta.get("refusal") or "") + _reasoning(delta, thoughts)
    sealed = any(entry.get("data") or entry.get("signature") for entry in json_list(delta.get("reasoning_details")))
    return bool(visible.strip() or delta.get("tool_calls") or delta.get("function_call") or sealed)


def chunks_of(body: bytes) -> tuple[list[Any], bool, bool]:
    """Return the chunks of a server-sent events body, whether `[DONE]` was seen, and whether a line was no JSON object."""
    chunks: list[Any] = []
    malformed = False
    for line in body.decode().replace("\r\n", "\n").split("\n"):
        data = line.removeprefix("data:").strip()
        if not line.startswith("data:") or not data:
            continue
        if data == "[DONE]":
            return chunks, True, malformed
        try:
            chunks.append(json.loads(data))
        except ValueError:
            malformed = True
    return chunks, False, malformed
