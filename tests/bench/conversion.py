"""`python -m tests.bench.conversion [HISTORY …]`: what converting a history costs, against openai-agents' converter.

CPU time of one process, rounds of all subjects in turn, the ratio of the medians. The histories are turns of an agent:
the user asks, the model thinks, calls a tool, gets its output, and answers; with all that can be in such a turn. In
those that end with "replayed" the reasoning goes back to who made it; in all others it does not.
"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

Json = dict[str, Any]
Convert = Callable[[list[Json]], Any]
Part = Callable[[int], Json]

PEER = "openai-agents"
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


def showed(number: int) -> Json:
    image = {
        "type": "input_image",
        "image_url": f"data:image/png;base64,{'iVBORw0KGgo' * 40}{number}",
        "detail": "auto",
    }
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is this?"}, image]}


def attached(number: int) -> Json:
    data = f"data:application/pdf;base64,{'JVBERi0xLjcK' * 40}"
    file = {"type": "input_file", "filename": f"report-{number}.pdf", "file_data": data}
    return {"role": "user", "content": [{"type": "input_text", "text": "Read it."}, file]}


def parted(number: int) -> Json:
    return {"role": "user", "content": [{"type": "input_text", "text": f"And in city {number}?"}]}


def shot(number: int) -> Json:
    """The output of a tool that took a picture."""
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{'iVBORw0KGgo' * 40}{number}"}
    output = [{"type": "input_text", "text": "The screen."}, image]
    return {"type": "function_call_output", "call_id": f"call_{number}", "output": output}


def sealed(number: int) -> Json:
    """Reasoning as OpenAI's servers give it."""
    return {**thought(number), "encrypted_content": f"gAAAAAB{'x' * 400}{number}"}


def routed(number: int) -> Json:
    """Reasoning as it comes through OpenRouter."""
    text = "First the weather of today, then that of tomorrow. " * 5
    detail = {"type": "reasoning.text", "text": text, "signature": f"Er{'0' * 300}{number}", "index": 0}
    return {**thought(number), "provider_data": {"reasoning_details": [detail]}}


def signed(number: int) -> Json:
    """Reasoning as it comes from Anthropic through LiteLLM."""
    text = "First the weather of today, then that of tomorrow. " * 5
    block = {"type": "thinking", "thinking": text, "signature": f"Er{'0' * 300}{number}"}
    return {**thought(number), "provider_data": {"thinking_blocks": [block]}}


def riding(number: int) -> Json:
    """A call as Gemini gives it."""
    return {**called(number), "provider_data": {"thought_signature": f"Cs{'0' * 300}{number}"}}


def spaced(number: int) -> Json:
    return {**called(number), "namespace": "weather"}


def typed(number: int) -> Json:
    head = {"type": "custom_tool_call", "id": f"ctc_{number}", "call_id": f"call_{number}", "status": "completed"}
    return {**head, "name": "query", "input": f'SELECT sky FROM weather WHERE city = "city {number}"'}


def typed_output(number: int) -> Json:
    return {**gave(number), "type": "custom_tool_call_output"}


def refused(number: int) -> Json:
    part = {"type": "refusal", "refusal": f"I cannot help with that in city {number}."}
    return {**answered(number), "content": [part]}


def told(number: int) -> Json:
    return {"role": "developer", "content": f"City {number} is closed."}


def other(part: Part) -> Part:
    """Return the same call or output, a second one beside it."""
    return lambda number: {**part(number), "call_id": f"other_{number}"}


# name -> the items of one turn
TURNS: dict[str, tuple[Part, ...]] = {
    "agent": (asked, thought, called, gave, answered),
    "agent, no reasoning": (asked, called, gave, answered),
    "chat": (asked, answered),
    "parts": (parted, answered),
    "answers": (answered,),
    "tools": (called, gave),
    "parallel": (called, other(called), gave, other(gave)),
    "images": (showed, answered),
    "files": (attached, answered),
    "images of tools": (called, shot),
    "sealed": (asked, sealed, called, gave, answered),
    "details": (asked, routed, called, gave, answered),
    "blocks": (asked, signed, called, gave, answered),
    "signatures": (asked, riding, gave, answered),
    "namespaces": (asked, spaced, gave, answered),
    "custom": (asked, typed, typed_output, answered),
    "refusals": (asked, refused),
    "mixed": (told, showed, sealed, called, other(spaced), shot, other(gave), answered, attached, refused),
    "text replayed": (asked, thought, called, gave, answered),
    "details replayed": (asked, routed, called, gave, answered),
    "blocks replayed": (asked, signed, called, gave, answered),
    "signatures replayed": (asked, riding, gave, answered),
}
# name -> the model that takes its reasoning back, and the profile that says the same
REPLAYED: dict[str, tuple[str, str]] = {
    "text replayed": ("deepseek-reasoner", "deepseek"),
    "details replayed": ("m", "openrouter"),  # openai-agents sends none back
    "blocks replayed": ("claude-x", "litellm"),
    "signatures replayed": ("gemini-x", "gemini"),
}
# items that openai-agents refuses, and those that it is given in their place
THEIRS: dict[Part, Part] = {typed: called, typed_output: gave}


def history(turn: str, items: int, *, theirs: bool = False) -> list[Json]:
    """Return a history of so many items. `theirs`: what openai-agents refuses is replaced by what it takes."""
    parts = [THEIRS.get(part, part) if theirs else part for part in TURNS[turn]]
    return [part(number) for number in range(items // len(parts)) for part in parts]


def subjects(turn: str = "") -> Iterator[tuple[str, Convert]]:
    """Yield the name of each converter, and the converter; openai-agents' own is the last, where it is installed."""
    from antiphon import load_profile
    from antiphon.models import Converter
    from antiphon.request import to_chat_request

    model, name = REPLAYED.get(turn, (None, "default"))
    how: Json = {"model": model, "preserve_thinking_blocks": True} if model else {}
    profile = load_profile(name)
    yield "to_chat_request", lambda items: to_chat_request({"model": "m", "input": items}, profile=profile)
    if turn != "custom":
        yield "Converter", lambda items: Converter.items_to_messages(items, **how)
    try:
        from agents.models.chatcmpl_converter import Converter as Theirs
    except ImportError:
        return
    yield PEER, lambda items: Theirs.items_to_messages(items, **how)


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds of one conversion."""

    turn: str
    items: int
    subject: str
    seconds: float


def measured(turn: str, items: int, rounds: int = ROUNDS, least: float = LEAST) -> list[Cost]:
    """Return what each subject costs on that history, taken in the same rounds."""
    found = dict(subjects(turn))
    given = {name: history(turn, items, theirs=name == PEER) for name in found}
    times: dict[str, list[float]] = {name: [] for name in found}
    repeats = {name: _repeats(convert, given[name], least) for name, convert in found.items()}
    for _ in range(rounds):
        for name, convert in found.items():
            gc.collect()
            times[name].append(_seconds(convert, given[name], repeats[name]))
    return [Cost(turn, items, name, median(values)) for name, values in times.items()]


def _repeats(convert: Convert, given: list[Json], least: float) -> int:
    _seconds(convert, given, 1)
    return max(1, int(least / max(_seconds(convert, given, 3), 1e-6)))


def _seconds(convert: Convert, given: list[Json], repeats: int) -> float:
    """Return the CPU seconds of one conversion, without what the garbage collector takes: it walks all that is there."""
    gc.freeze()
    gc.disable()
    try:
        start = time.process_time()
        for _ in range(repeats):
            convert(given)
        return (time.process_time() - start) / repeats
    finally:
        gc.enable()
        gc.unfreeze()


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


def main(turns: Sequence[str] = ()) -> None:
    """Print the ratios, the growth, and the memory."""
    print(f"{'history':20} {'items':>5} {'subject':16} {'ms':>8} {'ns/item':>8}  {PEER} takes")
    per_item: dict[tuple[str, int, str], float] = {}
    for turn in turns or TURNS:
        for items in (200, 2000):
            costs = measured(turn, items)
            theirs = next((cost.seconds for cost in costs if cost.subject == PEER), None)
            for cost in costs:
                per_item[turn, items, cost.subject] = cost.seconds / items
                ratio = "" if theirs is None else f"{theirs / cost.seconds:.2f} times as much"
                each = cost.seconds / items * 1e9
                print(f"{turn:20} {items:5} {cost.subject:16} {cost.seconds * 1e3:8.3f} {each:8.0f}  {ratio}")
    for turn in turns or TURNS:
        grown = {
            subject: per_item[turn, 2000, subject] / each
            for (one, items, subject), each in per_item.items()
            if (one, items) == (turn, 200) and subject in ("to_chat_request", PEER)
        }
        print(f"{turn:20} an item of 2000 costs, of one of 200:", ", ".join(f"{v:.2f} ({k})" for k, v in grown.items()))
    print(f"{'memory':20} {copied():.1%} of the text, at the peak: it is shared, not copied")


if __name__ == "__main__":
    main(sys.argv[1:])
