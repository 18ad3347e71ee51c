"""Mends characters that a provider cut in two: servers that count in UTF-16 send half an emoji as a lone surrogate."""

from __future__ import annotations

from collections.abc import Hashable

from msgspec.structs import replace

from .deltas import CallDelta, Delta, ReasoningDelta, RefusalDelta, TextDelta

LOST = "\ufffd"


class Halves:
    """Keeps a first half until the second one of its kind comes."""

    def __init__(self) -> None:
        self.held: dict[Hashable, tuple[str, Delta]] = {}

    def mend(self, delta: Delta) -> Delta | None:
        """Return `delta` with whole characters; None where half a character was all it had."""
        match delta:
            case TextDelta(text) | RefusalDelta(text) | ReasoningDelta(text):
                whole = self._whole(type(delta), text, delta)
                if whole is text:
                    return delta
                kept = isinstance(delta, ReasoningDelta) and delta.details
                return replace(delta, text=whole) if whole or kept else None
            case CallDelta(index=index, arguments=arguments):
                whole = self._whole(index, arguments, delta)
                return delta if whole is arguments else replace(delta, arguments=whole)
            case _:
                return delta

    def finish(self) -> list[Delta]:
        """Return what stands for halves that were never completed."""
        held, self.held = self.held, {}
        return [_with(delta, LOST) for _, delta in held.values()]

    def _whole(self, kind: Hashable, text: str, delta: Delta) -> str:
        if text.isascii() and kind not in self.held:
            return text
        text = self.held.pop(kind, ("", delta))[0] + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self.held[kind] = (text[-1], delta)
            text = text[:-1]
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _with(delta: Delta, text: str) -> Delta:
    if isinstance(delta, CallDelta):
        return CallDelta(delta.index, arguments=text, kind=delta.kind)
    return type(delta)(text)  # type: ignore[call-arg, arg-type]  # the kinds that have text begin with it
