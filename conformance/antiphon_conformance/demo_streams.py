"""The built-in chat streams: what providers send, oddities and framing included, and what must come of it.

Each file in `streams/` is one stream. Its first line says what it is and what must come of it; each other line is a
piece of the body: an object is sent as `data: <the line as it is>` and a blank line, a string as the text it is. The
shapes are those of recorded streams, the contents are our own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

DONE = b"[DONE]"
TEXTS = {"output_text": "text", "refusal": "refusal"}  # part type -> where it has its text
# item type -> what an item has where the expectation says nothing
USUAL: dict[str, Json] = {
    "message": {"text": "", "refusal": "", "citations": 0, "status": "completed"},
    "reasoning": {"sealed": False},
    "function_call": {"status": "completed"},
}


@dataclass(frozen=True, slots=True)
class DemoStream:
    """One stream. `title` is its oddity in a few words, `oddity` in a sentence; `chunks` are the objects in it.

    `ending`, `output` and `usage` (input and output tokens, None for no usage) are what must come of it.
    """

    name: str
    provider: str
    title: str
    oddity: str
    profile: str | None
    pieces: tuple[bytes, ...]
    chunks: tuple[Json, ...]
    ending: str
    output: tuple[Json, ...]
    usage: tuple[int, int] | None

    @property
    def body(self) -> bytes:
        """The body, whole."""
        return b"".join(self.pieces)

    @property
    def done(self) -> bool:
        """Whether `[DONE]` is sent."""
        return DONE in self.body


def demo_streams() -> list[DemoStream]:
    """Return the built-in streams, in the order in which they are played."""
    folder = files(__package__) / "streams"
    found = sorted((one for one in folder.iterdir() if one.name.endswith(".jsonl")), key=lambda one: one.name)
    return [read_stream(one.read_bytes()) for one in found]


def read_stream(file: bytes) -> DemoStream:
    """Return the stream that a file describes. Lines end with a line feed only: contents may have other separators."""
    first, *lines = file.strip(b"\n").split(b"\n")
    head, expected = json.loads(first), json.loads(first)["expect"]
    end = head.get("line_end", "\n").encode()
    frames = [_frame(line, end) for line in lines]
    usage = expected["usage"]
    return DemoStream(
        head["name"],
        head["provider"],
        head["title"],
        head["oddity"],
        head.get("profile"),
        tuple(_cut(b"".join(frames), head["piece"]) if "piece" in head else frames),
        tuple(json.loads(line) for line in lines if line[:1] == b"{"),
        expected["ending"],
        tuple(expected["output"]),
        None if usage is None else (usage[0], usage[1]),
    )


def _frame(line: bytes, end: bytes) -> bytes:
    """Return what is sent for a line of the file."""
    if line[:1] == b"{":
        return b"data: " + line + end * 2
    text: str = json.loads(line)
    return text.encode().replace(b"\n", end)


def _cut(body: bytes, size: int) -> Iterator[bytes]:
    """Yield `body` in pieces of `size` bytes, as a network cuts it."""
    for start in range(0, len(body), size):
        yield body[start : start + size]


# --- what came of it -----------------------------------------------------------------------------------------------


def differences(stream: DemoStream, events: Sequence[Json]) -> list[str]:
    """Return, in words, where the terminal event differs from what must come of the stream."""
    response: Json = events[-1].get("response", {}) if events else {}
    output = [compact(item) for item in response.get("output", ())]
    found = [("the ending", ending_of(response), stream.ending), ("the usage", usage_of(response), stream.usage)]
    found.append(("the number of items", len(output), len(stream.output)))
    for place, (got, wanted) in enumerate(zip(output, stream.output, strict=False)):
        whole = {**USUAL[wanted["type"]], **wanted}
        found.append((f"item {place}", {key: got.get(key) for key in whole}, whole))
    return [f"{what} is {got}, not {wanted}" for what, got, wanted in found if got != wanted]


def ending_of(response: Json) -> str:
    """Return how a response ended: its status, and why it is incomplete or with which code it failed."""
    why = (response.get("incomplete_details") or {}).get("reason") or (response.get("error") or {}).get("code")
    status = str(response.get("status", "no response"))
    return f"{status}: {why}" if why else status


def usage_of(response: Json) -> tuple[int, int] | None:
    """Return input and output tokens, None where there is no usage."""
    usage = response.get("usage")
    return (usage["input_tokens"], usage["output_tokens"]) if usage else None


def compact(item: Json) -> Json:
    """Return what an item says, without ids of our own."""
    match item:
        case {"type": "message", "content": content}:
            said = {kind: "".join(part[kind] for part in content if kind in part) for kind in TEXTS.values()}
            citations = sum(len(part.get("annotations", ())) for part in content)
            return {"type": "message", **said, "citations": citations, "status": item["status"]}
        case {"type": "reasoning", "summary": summary}:
            sealed = bool(item.get("encrypted_content"))
            return {"type": "reasoning", "text": "".join(part["text"] for part in summary), "sealed": sealed}
        case _:
            return item
