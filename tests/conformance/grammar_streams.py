"""Valid event streams of random shape, written down from the grammar alone.

They share no code with the engine, the rules, or the strategies of the suite, so that an error in one of these does not
excuse the same error here. `stream(seed)` is always the same for one seed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

Event: TypeAlias = dict[str, Any]
Events: TypeAlias = list[Event]

WORDS = ("Hello", " world", "\n", "é", "🎼", " ", "a\u2028b", "{}", "0", "the same", "x" * 40, "\t", "“q”")
DOCUMENTS: tuple[Any, ...] = ({}, {"a": 1}, {"q": 'é🎼 \\ " }{'}, {"l": [1, [2, {"x": None}]]})
ITEMS = ("message", "reasoning", "function_call", "custom_tool_call")
PARTS = ("t", "t", "t", "r", "tr", "rt", "trt", "tt", "")  # of a message: texts and refusals
CODES = ("server_error", "rate_limit_exceeded", "context_length_exceeded", "invalid_prompt")
TOOL = {"type": "function", "name": "f", "description": None, "parameters": {"type": "object"}, "strict": True}
# kind of text -> its events, the type of its part, the field that holds the text, what numbers the part
TEXTS = {
    "t": ("output_text", "output_text", "text", "content"),
    "r": ("refusal", "refusal", "refusal", "content"),
    "s": ("reasoning_summary_text", "summary_text", "text", "summary"),
    "c": ("reasoning_text", "reasoning_text", "text", "content"),
}
ADDS = {"content": "content_part", "summary": "reasoning_summary_part"}


@dataclass(slots=True)
class Writer:
    """Writes one stream, event by event."""

    rng: Random
    events: Events = field(default_factory=list[Event])
    output: Events = field(default_factory=list[Event])
    base: Event = field(default_factory=dict[str, Any])
    made: int = 0

    def id(self, kind: str) -> str:
        """Return a new id."""
        self.made += 1
        return f"{kind}_{self.rng.getrandbits(64):016x}{self.made}"

    def emit(self, kind: str, **fields: Any) -> None:
        self.events.append(deepcopy({"type": kind, **fields, "sequence_number": len(self.events)}))

    def words(self, *counts: int) -> list[str]:
        return [self.rng.choice(WORDS) for _ in range(self.rng.choice(counts))]

    # The response

    def begin(self) -> None:
        """Write the head, in the background or not."""
        rng, background = self.rng, self.rng.random() < 0.1
        self.base = {
            "id": self.id("resp"), "object": "response", "created_at": 1767225600, "completed_at": None,
            "status": "in_progress", "background": background, "error": None, "incomplete_details": None,
            "instructions": rng.choice((None, "Sing.")), "max_output_tokens": rng.choice((None, 16)),
            "max_tool_calls": None, "model": "choir-large", "output": [], "parallel_tool_calls": True,
            "previous_response_id": None, "reasoning": {"effort": None, "summary": None}, "service_tier": "default",
            "store": rng.random() < 0.5, "temperature": 1.0, "text": {"format": {"type": "text"}},
            "tool_choice": "auto", "tools": [TOOL] if rng.random() < 0.5 else [], "top_p": 1.0,
            "truncation": "disabled", "usage": None, "metadata": rng.choice(({}, {"choir": "12"})),
            "presence_penalty": 0.0, "frequency_penalty": 0.0, "top_logprobs": 0, "prompt_cache_key": None,
            "safety_identifier": None,
        }  # fmt: skip
        status = {"status": "queued"} if background else {}
        self.emit("response.created", response={**self.base, **status})
        if background:
            self.emit("response.queued", response={**self.base, **status})
        self.emit("response.in_progress", response=self.base)

    def end(self, how: str) -> None:
        """Write the error where there is one, and the terminal event."""
        rng, fields = self.rng, dict[str, Any]({"output": self.output, "status": how})
        if rng.random() < 0.8:
            put_in, out = rng.randint(1, 99), rng.randint(1, 99)
            details = {"cached_tokens": rng.randint(0, put_in), "cache_write_tokens": 0}
            fields["usage"] = {
                "input_tokens": put_in, "input_tokens_details": details, "output_tokens": out,
                "output_tokens_details": {"reasoning_tokens": rng.randint(0, out)}, "total_tokens": put_in + out,
            }  # fmt: skip
        if how == "completed":
            fields["completed_at"] = self.base["created_at"] + rng.randint(0, 9)
        elif how == "incomplete":
            fields["incomplete_details"] = {"reason": rng.choice(("max_output_tokens", "content_filter"))}
        else:
            flat = {"code": rng.choice(CODES), "message": "It broke."}
            self.emit("error", **flat, param=None, error={"type": "server_error", **flat, "param": None})
            fields["error"] = flat
        self.emit(f"response.{how}", response={**self.base, **fields})

    # Items

    def item(self, kind: str, status: str) -> None:
        match kind:
            case "message":
                self.message(status)
            case "reasoning":
                self.reasoning()
            case "function_call":
                self.function_call(status)
            case _:
                self.custom_call(status)

    def close(self, item: Event) -> None:
        self.emit("response.output_item.done", output_index=len(self.output), item=item)
        self.output.append(deepcopy(item))

    def add(self, item: Event, **empty: Any) -> None:
        self.emit("response.output_item.added", output_index=len(self.output), item={**item, **empty})

    def message(self, status: str) -> None:
        base: Event = {"id": self.id("msg"), "type": "message", "role": "assistant", "content": []}
        self.add(base, status="in_progress")
        logged = self.rng.random() < 0.3
        parts = [self.part(base["id"], n, kind, logged) for n, kind in enumerate(self.rng.choice(PARTS))]
        self.close({**base, "content": parts, "status": status})

    def reasoning(self) -> None:
        base: Event = {"id": self.id("rs"), "type": "reasoning", "summary": []}
        how, sealed = self.rng.choice(("", "s", "s", "c", "sc")), self.rng.random() < 0.3
        if sealed:
            base["encrypted_content"] = "gAAA" + "x" * 20
        if "c" in how:
            base["content"] = []
        self.add(base)
        for kind in how:
            parts = [self.part(base["id"], n, kind) for n in range(self.rng.randint(1, 3))]
            base = {**base, TEXTS[kind][3]: parts}
        self.close(base)

    def part(self, item_id: str, n: int, kind: str, logged: bool = False) -> Event:
        """Write all about one part, and return it as its item has it when done."""
        name, part_type, key, list_name = TEXTS[kind]
        at = {"item_id": item_id, "output_index": len(self.output), f"{list_name}_index": n}
        rest: Event = {"annotations": [], "logprobs": []} if kind == "t" else {}
        self.emit(f"response.{ADDS[list_name]}.added", **at, part={"type": part_type, key: "", **rest})
        pieces = self.words(1, 2, 3, 5, 12)
        for piece in pieces:
            logprobs = [self.logprob(piece)] if logged and kind == "t" else []
            self.emit(f"response.{name}.delta", **at, delta=piece, **({"logprobs": logprobs} if kind == "t" else {}))
            if kind == "t":
                rest["logprobs"] += logprobs
                self.annotate(at, rest["annotations"])
        told = {key: "".join(pieces)}
        self.emit(f"response.{name}.done", **at, **told, **({"logprobs": rest["logprobs"]} if kind == "t" else {}))
        done = {**rest, "logprobs": []} if kind == "t" else {}
        self.emit(f"response.{ADDS[list_name]}.done", **at, part={"type": part_type, **told, **done})
        return {"type": part_type, **told, **rest}

    def annotate(self, at: Event, known: Events) -> None:
        """Write an annotation, sometimes."""
        if self.rng.random() < 0.15:
            place = {"start_index": 0, "end_index": 1, "url": f"https://e.example/{len(known)}", "title": "T"}
            known.append({"type": "url_citation", **place})
            self.emit(
                "response.output_text.annotation.added", **at, annotation_index=len(known) - 1, annotation=known[-1]
            )

    def logprob(self, piece: str) -> Event:
        own = {"token": piece, "bytes": list(piece.encode()), "logprob": -0.5}
        return {**own, "top_logprobs": [own] if self.rng.random() < 0.5 else []}

    def function_call(self, status: str) -> None:
        whole = json.dumps(self.rng.choice(DOCUMENTS), ensure_ascii=self.rng.random() < 0.5)
        arguments = whole[: self.rng.randint(0, len(whole))] if status == "incomplete" else whole
        step = self.rng.randint(1, 6)
        pieces = [arguments[first : first + step] for first in range(0, len(arguments), step)]
        self.call("fc", "function_call", "arguments", "function_call_arguments", pieces, status)

    def custom_call(self, status: str) -> None:
        self.call("ctc", "custom_tool_call", "input", "custom_tool_call_input", self.words(0, 1, 4), status)

    def call(self, prefix: str, kind: str, key: str, name: str, pieces: Sequence[str], status: str) -> None:
        base = {"id": self.id(prefix), "type": kind, "call_id": self.id("call"), "name": self.rng.choice(("f", "g"))}
        at = {"item_id": base["id"], "output_index": len(self.output)}
        self.add(base, status="in_progress", **{key: ""})
        for piece in pieces:
            self.emit(f"response.{name}.delta", **at, delta=piece)
        told = {key: "".join(pieces)}
        self.emit(f"response.{name}.done", **at, **told)
        self.close({**base, **told, "status": status})


def stream(seed: int, items: int | None = None, how: str = "") -> Events:
    """Return the valid stream of that seed: with so many items, ending as `how` says (completed, incomplete, failed)."""
    rng = Random(seed)
    writer = Writer(rng)
    writer.begin()
    how = how or rng.choice(("completed", "completed", "incomplete", "failed"))
    count = rng.choice((0, 1, 1, 2, 3, 5, 8)) if items is None else items
    kinds = [rng.choice(ITEMS) for _ in range(count)]
    if how == "completed" and kinds:
        kinds[-1] = rng.choice(("message", "function_call"))
    cut = count if how == "completed" else rng.randint(0, count)
    for n, kind in enumerate(kinds):
        writer.item(kind, "completed" if n < cut else "incomplete")
    writer.end(how)
    return writer.events
