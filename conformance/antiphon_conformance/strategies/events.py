"""Canonical event streams, written from the grammar: what a conversation must become, made by no adapter."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hypothesis import strategies as st

from .conversations import Conversation, Said, conversations

Json: TypeAlias = dict[str, Any]

# What every snapshot has where the request said nothing. Source: GRAMMAR §1, the Open Responses schema.
_HEAD: Json = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1700000000.0,
    "model": "m",
    "status": "in_progress",
    "background": False,
    "completed_at": None,
    "error": None,
    "frequency_penalty": 0.0,
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "output": [],
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": None,
    "safety_identifier": None,
    "service_tier": "default",
    "store": False,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "usage": None,
}
# finish_reason -> (terminal event's status, why it is incomplete)
_ENDINGS: dict[str, tuple[str, str | None]] = {
    "stop": ("completed", None),
    "tool_calls": ("completed", None),
    "length": ("incomplete", "max_output_tokens"),
    "content_filter": ("incomplete", "content_filter"),
}
_PARTS: dict[str, tuple[str, str, str, Json]] = {
    # kind -> (event of the part, event of the text, field of the whole text, the empty part)
    "text": (
        "content_part",
        "output_text",
        "text",
        {"type": "output_text", "annotations": [], "logprobs": [], "text": ""},
    ),
    "refusal": ("content_part", "refusal", "refusal", {"type": "refusal", "refusal": ""}),
    "reasoning": ("reasoning_summary_part", "reasoning_summary_text", "text", {"type": "summary_text", "text": ""}),
}
_CALLS: dict[str, tuple[str, str, str, str]] = {
    # kind -> (type, prefix of the id, event of the text, field of the whole text)
    "call": ("function_call", "fc", "function_call_arguments", "arguments"),
    "custom": ("custom_tool_call", "ctc", "custom_tool_call_input", "input"),
}


def answer(talk: Conversation, *, piece: int = 1000, seed: int = 0) -> list[Json]:
    """Return the canonical events of a conversation, its texts in deltas of at most `piece` characters.

    >>> [event["type"] for event in answer(Conversation(()))]
    ['response.created', 'response.in_progress', 'response.completed']
    """
    return list(_Writer(talk, piece, random.Random(seed)).write())


@st.composite
def event_streams(draw: st.DrawFn, talks: st.SearchStrategy[Conversation] | None = None) -> list[Json]:
    """Draw a canonical event stream: one of `talks`, in deltas of any size. No rule of strength MUST finds anything in it."""
    talk = draw(conversations() if talks is None else talks)
    return answer(talk, piece=draw(st.sampled_from((1, 3, 1000))), seed=draw(st.integers(0, 2**16)))


@dataclass(slots=True)
class _Writer:
    """Writes one stream. `output` are the items that are done."""

    talk: Conversation
    piece: int
    dice: random.Random
    output: list[Json] = field(default_factory=list[Json])

    def write(self) -> Iterator[Json]:
        return ({**event, "sequence_number": n} for n, event in enumerate(self._events()))

    def _events(self) -> Iterator[Json]:
        yield {"type": "response.created", "response": _HEAD}
        yield {"type": "response.in_progress", "response": _HEAD}
        groups = list(_grouped(self.talk.said))
        for group in groups:
            cut = self.talk.is_cut and group is groups[-1]
            yield from self._call(group[0], cut) if group[0].is_call else self._parted(group, cut)
        status, reason = _ENDINGS[self.talk.finish]
        details = {"reason": reason} if reason else None
        ended = {"status": status, "output": self.output, "incomplete_details": details, "usage": self._usage()}
        at = 1700000001 if status == "completed" else None
        yield {"type": f"response.{status}", "response": {**_HEAD, **ended, "completed_at": at}}

    def _usage(self) -> Json | None:
        if self.talk.usage is None:
            return None
        prompt, completion = self.talk.usage
        return {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": completion,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt + completion,
        }

    def _item(self, added: Json, between: Sequence[Json], done: Json) -> Iterator[Json]:
        index = len(self.output)
        yield {"type": "response.output_item.added", "output_index": index, "item": added}
        yield from ({**event, "item_id": added["id"], "output_index": index} for event in between)
        yield {"type": "response.output_item.done", "output_index": index, "item": done}
        self.output.append(done)

    def _parted(self, group: Sequence[Said], cut: bool) -> Iterator[Json]:
        """Yield a message, of one or more parts, or a reasoning item."""
        index = len(self.output)
        if group[0].kind == "reasoning":
            added: Json = {"id": f"rs_{index}", "type": "reasoning", "summary": []}
            key = "summary"
        else:
            added = {
                "id": f"msg_{index}",
                "type": "message",
                "role": "assistant",
                "status": "in_progress",
                "content": [],
            }
            key = "content"
        between = [event for n, one in enumerate(group) for event in self._part(one, f"{key}_index", n)]
        parts = [event["part"] for event in between if event["type"].endswith("_part.done")]
        status = {"status": "incomplete" if cut else "completed"} if key == "content" else {}
        yield from self._item(added, between, {**added, **status, key: parts})

    def _part(self, one: Said, index: str, n: int) -> Iterator[Json]:
        part, event, field_name, empty = _PARTS[one.kind]
        where = {index: n}
        more: Json = {"logprobs": []} if one.kind == "text" else {}
        yield {"type": f"response.{part}.added", **where, "part": empty}
        for piece in self._pieces(one.content):
            yield {"type": f"response.{event}.delta", **where, "delta": piece, **more}
        yield {"type": f"response.{event}.done", **where, field_name: one.content, **more}
        yield {"type": f"response.{part}.done", **where, "part": {**empty, field_name: one.content}}

    def _call(self, one: Said, cut: bool) -> Iterator[Json]:
        kind, prefix, event, field_name = _CALLS[one.kind]
        index = len(self.output)
        call_id = one.id or f"call_{index}"
        added = {
            "id": f"{prefix}_{index}",
            "type": kind,
            "call_id": call_id,
            "name": one.name,
            "status": "in_progress",
            field_name: "",
        }
        deltas = [{"type": f"response.{event}.delta", "delta": piece} for piece in self._pieces(one.content)]
        done = {**added, field_name: one.content, "status": "incomplete" if cut else "completed"}
        yield from self._item(added, [*deltas, {"type": f"response.{event}.done", field_name: one.content}], done)

    def _pieces(self, text: str) -> Iterator[str]:
        while text:
            size = self.dice.randint(1, self.piece)
            yield text[:size]
            text = text[size:]


def _grouped(said: Sequence[Said]) -> Iterator[list[Said]]:
    """Yield what becomes one item: text and refusal next to each other are parts of one message."""
    group: list[Said] = []
    for one in said:
        if group and not (one.kind in ("text", "refusal") and group[-1].kind in ("text", "refusal")):
            yield group
            group = []
        group.append(one)
    if group:
        yield group
