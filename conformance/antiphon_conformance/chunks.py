"""`check_answer`: what the CHT and WIR rules say about one answer of a server; `AnswerTrace` is what they look at.

    Exchange -> AnswerTrace -> rules -> Report

The chunk stream is judged as it came over the wire, before anything tolerant has read it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .exchange import Exchange
from .read import Json, mapping, mappings, number, plain, text
from .report import Finding, Report
from .rule import AnswerNeed, Need, Rule, answer_rules
from .wire import DONE, Wire, read_wire


@dataclass(frozen=True, slots=True)
class ChoiceAt:
    """One choice of chunk `at`."""

    at: int
    index: int
    choice: Json

    @property
    def delta(self) -> Json:
        """The delta, {} where it is none."""
        return mapping(self.choice.get("delta"))

    @property
    def says(self) -> bool:
        """Whether the delta holds any output."""
        return any(value not in (None, "", []) for key, value in self.delta.items() if key != "role")

    @property
    def finish(self) -> str:
        """The finish_reason, "" for none."""
        return text(self.choice.get("finish_reason"))


@dataclass(frozen=True, slots=True)
class FragmentAt:
    """One entry of `tool_calls` in chunk `at`. `index` is None where it has none."""

    at: int
    choice: int
    index: int | None
    call: Json

    @property
    def function(self) -> Json:
        """The function, {} where there is none."""
        return mapping(self.call.get("function"))


class AnswerTrace:
    """One answer, read strictly.

    `values` are the payloads in order without `[DONE]`: JSON values, or the text where it is no JSON; places in
    findings count them from 0. `chunks` are those that are objects and no error; none where none of them has
    `choices`, since then a server says something else in the place of a stream. `done` is whether `[DONE]` came.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.asked: Json = dict(exchange.request)
        self.wire: Wire = read_wire(exchange.body) if exchange.streamed and exchange.answered else Wire()
        self.values: list[Any] = []
        self.unreadable: list[tuple[int, str]] = []
        self.after_done = 0
        self.done = False
        for message in self.wire.messages:
            if message.data.strip() == DONE:
                self.done = True
            else:
                self.after_done += self.done
                self._take(message.data)
        objects = [(at, held) for at, value in enumerate(self.values) if (held := plain(value)) is not None]
        self.errors = [(at, one) for at, one in objects if one.get("error") or one.get("object") == "error"]
        chunks = [(at, one) for at, one in objects if not one.get("error") and one.get("object") != "error"]
        self.chunks = chunks if any("choices" in one for _, one in chunks) else []

    def _take(self, payload: str) -> None:
        try:
            value: Any = json.loads(payload)
        except (ValueError, RecursionError):
            value = payload
        if not isinstance(value, dict):
            self.unreadable.append((len(self.values), payload))
        self.values.append(value)

    @cached_property
    def choices(self) -> list[ChoiceAt]:
        """The choices of all chunks, in order; one without an index counts as choice 0."""
        return [
            ChoiceAt(at, number(choice.get("index")) or 0, choice)
            for at, chunk in self.chunks
            for choice in mappings(chunk.get("choices"))
        ]

    @cached_property
    def by_choice(self) -> dict[int, list[ChoiceAt]]:
        """The choices by their index."""
        found: dict[int, list[ChoiceAt]] = defaultdict(list)
        for one in self.choices:
            found[one.index].append(one)
        return dict(found)

    @cached_property
    def fragments(self) -> list[FragmentAt]:
        """The entries of `tool_calls`, in order."""
        return [
            FragmentAt(one.at, one.index, number(call.get("index")), call)
            for one in self.choices
            for call in mappings(one.delta.get("tool_calls"))
        ]

    @cached_property
    def calls(self) -> dict[tuple[int, int], list[FragmentAt]]:
        """The fragments of each call, by choice and index; those without an index are left out."""
        found: dict[tuple[int, int], list[FragmentAt]] = defaultdict(list)
        for one in self.fragments:
            if one.index is not None:
                found[one.choice, one.index].append(one)
        return dict(found)

    @cached_property
    def called(self) -> frozenset[int]:
        """The choices that call a tool."""
        return frozenset(
            one.index for one in self.choices if one.delta.get("tool_calls") or one.delta.get("function_call")
        )

    @cached_property
    def usages(self) -> list[tuple[int, Json]]:
        """The chunks that carry usage, with their places."""
        return [(at, chunk) for at, chunk in self.chunks if mapping(chunk.get("usage"))]

    def content(self, index: int = 0) -> str:
        """Return the text of a choice."""
        return "".join(text(one.delta.get("content")) for one in self.by_choice.get(index, ()))

    def finish(self, index: int = 0) -> str:
        """Return the first finish_reason of a choice, "" for none."""
        return next((one.finish for one in self.by_choice.get(index, ()) if one.finish), "")

    def arguments(self) -> Iterator[tuple[int, str, str]]:
        """Yield each call's last place, name and joined arguments."""
        for pieces in self.calls.values():
            name = next((name for one in pieces if (name := text(one.function.get("name")))), "")
            yield pieces[-1].at, name, "".join(text(one.function.get("arguments")) for one in pieces)

    @cached_property
    def report(self) -> Report:
        """What the rules say about the answer."""
        return _report(self)

    @property
    def whole(self) -> bool:
        """Whether the stream came to its end by itself, without an error."""
        return not self.exchange.failure and not self.exchange.left and not self.errors

    @property
    def cut(self) -> bool:
        """Whether the body ends, and neither a finish_reason nor `[DONE]` was in it."""
        return self.whole and not self.done and not any(one.choice.get("finish_reason") for one in self.choices)


def check_answer(exchange: Exchange) -> Report:
    """Return what the rules about answers say. `Report.events` are the payloads; findings place themselves in them."""
    return exchange.trace.report


def _report(trace: AnswerTrace) -> Report:
    ran: list[str] = []
    left_out: dict[str, str] = {}
    findings: list[Finding] = []
    for rule in answer_rules():
        missing = _missing(rule, trace)
        if missing:
            left_out[rule.code] = missing
            continue
        ran.append(rule.code)
        findings += rule.apply(trace)
    findings.sort(key=lambda one: (-1 if one.index is None else one.index, one.code))
    return Report(tuple(findings), tuple(ran), left_out, trace.values)


def _missing(rule: Rule, trace: AnswerTrace) -> str:
    """Return what the rule needs and is not there, or ""."""
    return next((need.value for need in rule.needs if isinstance(need, Need) or not _met(need, trace)), "")


def _met(need: AnswerNeed, trace: AnswerTrace) -> bool:
    exchange = trace.exchange
    match need:
        case AnswerNeed.CHAT:
            return exchange.api == "chat"
        case AnswerNeed.RESPONSES:
            return exchange.api == "responses"
        case AnswerNeed.STREAM:
            return exchange.streamed
        case AnswerNeed.CHUNKS:
            return bool(trace.chunks)
        case AnswerNeed.WHOLE:
            return trace.whole
        case AnswerNeed.REFUSAL:
            return exchange.status is not None and exchange.status >= 400
        case AnswerNeed.TWIN:
            return exchange.twin is not None
        case AnswerNeed.BESIDE:
            return exchange.beside is not None
        case AnswerNeed.AFTER:
            return exchange.after is not None
