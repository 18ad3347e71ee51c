"""`python -m tests.bench.conversion`: what converting a history costs, against openai-agents' converter.

CPU time of one process, rounds of all subjects in turn, the ratio of the medians. The histories are turns of an agent:
the user asks, the model thinks, calls a tool, gets its output, and answers.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

Json = dict[str, Any]
Convert = Callable[[list[Json]], Any]
Part = Callable[[int], Json]

ROUNDS = 15
LEAST = 0.02  # seconds of CPU that one timing takes at the least


def asked(number: int) -> Json:
    return {"role": "user", "content": f"What is the weather in city {number}, and what should I wear there? " * 3}


def thought(number: int) -> Json:
    summary = [{"type": "summary_text", "text": "First the weather of today, then that of tomorrow. " * 5}]
    return {"type": "reasoning", "id": f"rs_{number}", "summary": summary}


def called(number: int) -> Json:
    arguments = f'{{"city": "city {number}", "unit": "celsius"}}'
    head = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "status": "completed"}
    return {**head, "name": "get_weather", "arguments": arguments}


def gave(number: int) -> Json:
    return {"type": "function_call_output", "call_id": f"call_{number}", "output": '{"sky": "clear", "wind": 3}' * 4}


def answered(number: int) -> Json:
    part = {"type": "output_text", "text": f"It is {number} degrees there. " * 5, "annotations": [], "logprobs": []}
    head = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed"}
    return {**head, "content": [part]}


# name -> the items of one turn
TURNS: dict[str, tuple[Part, ...]] = {
    "agent": (asked, thought, called, gave, answered),
    "agent, no reasoning": (asked, called, gave, answered),
    "chat": (asked, answered),
    "tools": (called, gave),
}


def history(turn: str, items: int) -> list[Json]:
    """Return a history of so many items."""
    parts = TURNS[turn]
    return [part(number) for number in range(items // len(parts)) for part in parts]


def subjects() -> Iterator[tuple[str, Convert]]:
    """Yield the name of each converter, and the converter; openai-agents' own is the last, where it is installed."""
    from antiphon.models import Converter
    from antiphon.request import to_chat_request

    yield "to_chat_request", lambda items: to_chat_request({"model": "m", "input": items})
    yield "Converter", Converter.items_to_messages
    try:
        from agents.models.chatcmpl_converter import Converter as Theirs
    except ImportError:
        return
    yield "openai-agents", Theirs.items_to_messages


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds of one conversion."""

    turn: str
    items: int
    subject: str
    seconds: float


def measured(turn: str, items: int, rounds: int = ROUNDS, least: float = LEAST) -> list[Cost]:
    """Return what each subject costs on that history, taken in the same rounds."""
    given = history(turn, items)
    found = dict(subjects())
    times: dict[str, list[float]] = {name: [] for name in found}
    repeats = {name: _repeats(convert, given, least) for name, convert in found.items()}
    for _ in range(rounds):
        for name, convert in found.items():
            gc.collect()
            times[name].append(_seconds(convert, given, repeats[name]))
    return [Cost(turn, items, name, median(values)) for name, values in times.items()]


def _repeats(convert: Convert, given: list[Json], least: float) -> int:
    _seconds(convert, given, 1)
    return max(1, int(least / max(_seconds(convert, given, 3), 1e-6)))


def _seconds(convert: Convert, given: list[Json], repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        convert(given)
    return (time.process_time() - start) / repeats


def copied(items: int = 200, characters: int = 10_000) -> float:
    """Return how much memory a conversion takes at its peak, as a part of the text that it converts."""
    from antiphon.request import to_chat_request

    given = [
        {"role": ("user", "assistant")[number % 2], "content": f"{number} " * (characters // 4)}
        for number in range(items)
    ]
    size = sum(len(item["content"]) for item in given)
    to_chat_request({"model": "m", "input": given})
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    made = to_chat_request({"model": "m", "input": given})
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert len(made.body["messages"]) == items
    return peak / size


def main() -> None:
    """Print the ratios, the growth, and the memory."""
    print(f"{'history':20} {'items':>5} {'subject':16} {'ms':>8} {'ns/item':>8}  openai-agents takes")
    per_item: dict[tuple[str, int], float] = {}
    for turn in TURNS:
        for items in (200, 2000):
            costs = measured(turn, items)
            theirs = next((cost.seconds for cost in costs if cost.subject == "openai-agents"), None)
            for cost in costs:
                if cost.subject == "to_chat_request":
                    per_item[turn, items] = cost.seconds / items
                ratio = "" if theirs is None else f"{theirs / cost.seconds:.2f} times as much"
                each = cost.seconds / items * 1e9
                print(f"{turn:20} {items:5} {cost.subject:16} {cost.seconds * 1e3:8.3f} {each:8.0f}  {ratio}")
    for turn in TURNS:
        growth = per_item[turn, 2000] / per_item[turn, 200]
        print(f"{turn:20} an item of 2000 costs {growth:.2f} of one of 200")
    print(f"{'memory':20} {copied():.1%} of the text, at the peak: it is shared, not copied")


if __name__ == "__main__":
    main()
