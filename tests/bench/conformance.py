"""`python -m tests.bench.conformance`: how fast the rules are, and that their cost grows as the stream does.

Printed are CPU times of this process: events a second over streams of several lengths, the cost of an event in the
longest as a multiple of that in the shortest (1.00 is linear), and what a full run of the suite over our own handler takes, with the adapter's own share.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from antiphon import convert
from antiphon_conformance import check
from antiphon_conformance.adapters import PythonAdapter
from antiphon_conformance.answer import Answer
from antiphon_conformance.case import CAPABILITIES, Case
from antiphon_conformance.own import dicts
from antiphon_conformance.running import Settings, run_suite

T = TypeVar("T")
LENGTHS = (5_000, 20_000, 80_000)
ROUNDS = 3


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def long_text(length: int) -> list[dict[str, Any]]:
    return [*(chunk({"content": f"word {n} "}) for n in range(length)), chunk({}, "stop")]


def long_arguments(length: int) -> list[dict[str, Any]]:
    head = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":"'}}
    pieces = ({"index": 0, "function": {"arguments": "abc "}} for _ in range(length))
    last = {"index": 0, "function": {"arguments": '"}'}}
    return [*(chunk({"tool_calls": [one]}) for one in (head, *pieces, last)), chunk({}, "tool_calls")]


def many_items(length: int) -> list[dict[str, Any]]:
    pairs = (one for n in range(length // 10) for one in (chunk({"reasoning": f"r{n}"}), chunk({"content": f"t{n}"})))
    return [*pairs, chunk({}, "stop")]


def many_calls(length: int) -> list[dict[str, Any]]:
    heads = (
        {"index": n, "id": f"call_{n}", "function": {"name": "f", "arguments": '{"a":'}} for n in range(length // 10)
    )
    rest = ({"index": n, "function": {"arguments": "1}"}} for n in range(length // 10))
    pairs = (chunk({"tool_calls": [one]}) for pair in zip(heads, rest, strict=True) for one in pair)
    return [*pairs, chunk({}, "tool_calls")]


def many_whole_calls(length: int) -> list[dict[str, Any]]:
    entries = (
        {"index": n, "id": f"call_{n}", "function": {"name": "f", "arguments": '{"a": 1, "b": ["text"]}'}}
        for n in range(length // 10)
    )
    return [*(chunk({"tool_calls": [one]}) for one in entries), chunk({}, "tool_calls")]


def reasoning_details(length: int) -> list[dict[str, Any]]:
    words = (f"word {n} " for n in range(length))
    told = ({"reasoning": one, "reasoning_details": [{"type": "reasoning.text", "text": one}]} for one in words)
    return [*(chunk({"content": "", **one}) for one in told), chunk({"content": "So."}), chunk({}, "stop")]


def usage_always(length: int) -> list[dict[str, Any]]:
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    return [{**one, "usage": usage} for one in long_text(length)]


def refusal(length: int) -> list[dict[str, Any]]:
    return [*(chunk({"refusal": f"word {n} "}) for n in range(length)), chunk({}, "stop")]


def logprobs(length: int) -> list[dict[str, Any]]:
    made = long_text(length)
    for one in made[:-1]:
        one["choices"][0]["logprobs"] = {
            "content": [{"token": "a", "logprob": -0.1, "bytes": [97], "top_logprobs": []}]
        }
    return made


STREAMS: dict[str, Callable[[int], list[dict[str, Any]]]] = {
    "text": long_text,
    "arguments": long_arguments,
    "items": many_items,
    "calls": many_calls,
    "whole": many_whole_calls,
    "details": reasoning_details,
    "usage": usage_always,
    "refusal": refusal,
    "logprobs": logprobs,
}


class Timed(PythonAdapter):
    """Our handler, and how long it takes itself."""

    seconds = 0.0

    def answer(self, case: Case) -> Answer:
        begun = time.process_time()
        answer = super().answer(case)
        self.seconds += time.process_time() - begun
        return answer


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Return the least CPU time of several rounds, and the result."""
    best, result = float("inf"), work()
    for _ in range(ROUNDS):
        begun = time.process_time()
        result = work()
        best = min(best, time.process_time() - begun)
    return best, result


def rates(make: Callable[[int], list[dict[str, Any]]], with_chunks: bool) -> Iterator[tuple[int, float]]:
    """Yield how many events there are, and how many a second are judged, for each length."""
    for length in LENGTHS:
        chunks = make(length)
        events = list(convert(chunks, events="dict"))
        gc.collect()
        gc.freeze()  # what the collector spends on the streams themselves is not the rules' cost
        seconds, report = timed(partial(check, events, chunks=chunks if with_chunks else None))
        gc.unfreeze()
        assert not report.findings
        yield len(events), len(events) / seconds


def main() -> None:
    for name, make in STREAMS.items():
        for with_chunks in (False, True):
            found = list(rates(make, with_chunks))
            beside = "with chunks" if with_chunks else "events alone"
            shown = "  ".join(f"{count:>7,}: {rate / 1000:>6.0f} k/s" for count, rate in found)
            print(f"{name:<10} {beside:<13} {shown}  cost, longest : shortest {found[0][1] / found[-1][1]:.2f}")
    adapter = Timed(dicts)
    begun = time.process_time()
    report = run_suite(adapter, settings=Settings(has=CAPABILITIES))
    seconds = time.process_time() - begun
    cases = len({run.case for run in report.ran})
    print(
        f"full run   {cases} cases in {len(report.ran)} runs: {seconds:.1f} s CPU, the adapter's share {adapter.seconds:.1f} s"
    )


if __name__ == "__main__":
    import logging

    logging.getLogger("antiphon").addHandler(logging.NullHandler())
    main()
