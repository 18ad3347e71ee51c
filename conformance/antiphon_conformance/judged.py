"""What a recording breaks, and whether a smaller one breaks the same: the questions that `antiphon shrink` asks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from .read import mapping
from .report import Finding, Level

if TYPE_CHECKING:
    from .adapters import Adapter

Kind: TypeAlias = Literal["chunks", "events"]
# a stream -> what is wrong with it, and the events that were judged
Judge: TypeAlias = Callable[[Sequence[Any]], tuple[Sequence[Finding], Sequence[Any]]]


def kind_of(values: Sequence[Any]) -> Kind | None:
    """Return what a recording holds: chunks have `choices`, events a `type`; None for neither."""
    for value in values:
        held = mapping(value)
        if "choices" in held or held.get("object") == "chat.completion.chunk":
            return "chunks"
        if isinstance(held.get("type"), str):
            return "events"
    return None


def judge_events(events: Sequence[Any]) -> tuple[Sequence[Finding], Sequence[Any]]:
    """Return what is wrong with an event stream."""
    from .judge import check

    report = check(events)
    return report.findings, report.events


def judge_answer(chunks: Sequence[Any], *, done: bool = True) -> tuple[Sequence[Finding], Sequence[Any]]:
    """Return what is wrong with the chunks themselves, as an answer of a chat backend."""
    from .chunks import check_answer
    from .exchange import Exchange, Piece

    lines = [f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n" for one in chunks]
    body = "".join([*lines, "data: [DONE]\n\n"] if done else lines).encode("utf-8", "replace")
    headers = {"content-type": "text/event-stream"}
    request = {"stream": True, "stream_options": {"include_usage": True}}
    exchange = Exchange("chat", request, 200, headers, (Piece(0.0, body),))
    return check_answer(exchange).findings, ()


def own_judge(*, profile: str | None = None, done: bool = False) -> Judge:
    """Return the judge of what our own handler makes of chunks."""
    from antiphon import ChatCmplStreamHandler

    from .judge import check

    def judge(chunks: Sequence[Any]) -> tuple[Sequence[Finding], Sequence[Any]]:
        handler = ChatCmplStreamHandler(profile=profile, events="dict", ids="counted", created_at=0)
        events = [event for chunk in chunks for event in handler.feed(chunk)]
        events += handler.finish(done=done)
        return check(events, chunks=chunks, profile=profile, done=done).findings, events

    return judge


def adapter_judge(adapter: Adapter, *, done: bool = False) -> Judge:
    """Return the judge of what an adapter makes of chunks; that it raises or hangs is a finding too."""
    from .case import Case
    from .running import judge as judged

    def judge(chunks: Sequence[Any]) -> tuple[Sequence[Finding], Sequence[Any]]:
        case = Case("shrink/recording", "a recording", "a recording", (), tuple(chunks), None, done=done)
        answer = adapter.answer(case)
        findings, _, events = judged(case, answer, adapter.told)
        return findings, events

    return judge


@dataclass(slots=True)
class Same:
    """Asks whether a stream breaks a rule as another one does: the same rule, told in the same words but for numbers
    and quotations; and no other MUST than there. `finding` is how the last stream that did breaks it."""

    judge: Judge
    finding: Finding
    codes: frozenset[str]

    @classmethod
    def as_in(cls, judge: Judge, finding: Finding, findings: Sequence[Finding]) -> Same:
        """Return what asks for `finding`, one of `findings`."""
        return cls(judge, finding, frozenset(one.code for one in findings if one.level is Level.MUST) | {finding.code})

    def __call__(self, stream: Sequence[Any]) -> bool:
        """Return whether the stream breaks the same."""
        findings, _ = self.judge(stream)
        if any(one.level is Level.MUST and one.code not in self.codes for one in findings):
            return False
        alike = next((one for one in findings if self._alike(one)), None)
        self.finding = alike or self.finding
        return alike is not None

    def _alike(self, one: Finding) -> bool:
        return one.code == self.finding.code and gist(one.message) == gist(self.finding.message)


def gist(message: str) -> str:
    """Return a message without what differs between streams: quotations, words with digits, how many more there are.

    >>> gist("call call_7f is done with '{}', where '{\\"a\\":1}' came (3 more like it)")
    "call # is done with '', where '' came"
    """
    message = re.sub(r"`[^`]*`", "``", re.sub(r" \(\d+ [^()]*\)$", "", message))
    message = re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", "''", message)
    return re.sub(r"[^\s`]*\d[^\s`]*", "#", message)
