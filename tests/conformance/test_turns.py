"""Text, refusal, reasoning and calls take turns in the events as they do in the chunks.

What an adapter makes of other chunks than those that are judged has all that they say, and in another order.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon import convert
from antiphon_conformance import Level, check

HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1767225600, "model": "choir-large"}
FIELDS = {"r": "reasoning_content", "t": "content", "x": "refusal"}
# of calls: id and name, the arguments in two pieces
CALLS = {name: ({"id": f"call_{name}", "function": {"name": name}}, '{"n":', "1}") for name in "fg"}


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def fragment(name: str, **call: Any) -> dict[str, Any]:
    return chunk({"tool_calls": [{"index": "fg".index(name), **call}]})


def said(turns: str) -> list[dict[str, Any]]:
    """Return chunks: r, t and x are a piece of reasoning, text and refusal, each other than those before; f and g are
    whole calls, F and G begin them, and a digit after that goes on with both."""
    made, count = list[dict[str, Any]](), dict.fromkeys("rtx", 0)
    for turn in turns:
        if turn in FIELDS:
            count[turn] += 1
            made.append(chunk({FIELDS[turn]: f"{turn}{count[turn]}. "}))
            continue
        begin, first, rest = CALLS[turn.lower()]
        made.append(fragment(turn.lower(), **begin))
        made.append(fragment(turn.lower(), function={"arguments": first if turn.isupper() else first + rest}))
    made += [fragment(turn.lower(), function={"arguments": CALLS[turn.lower()][2]}) for turn in turns if turn.isupper()]
    return [*made, chunk({}, "tool_calls" if {*turns.lower()} & {*"fg"} else "stop")]


def codes(made: str, judged: str) -> list[str]:
    """Return what is found in the events made of some chunks, when others are taken for their source."""
    report = check(convert(said(made), events="dict"), chunks=said(judged))
    return [one.code for one in report.findings if one.level is Level.MUST]


# what the chunks say, what the events say -> what is found
TURNS: dict[tuple[str, str], list[str]] = {
    ("rtrt", "rrtt"): ["FTH001", "FTH003"],
    ("trt", "ttr"): ["FTH001"],
    ("trt", "rtt"): ["FTH001"],
    ("rt", "tr"): ["RSN002"],
    ("txt", "ttx"): ["FTH001"],
    ("tx", "xt"): ["FTH001"],
    ("xtrx", "txrx"): ["FTH001"],
    ("tf", "ft"): ["FTH001"],
    ("ft", "tf"): ["FTH001"],
    ("rft", "rtf"): ["FTH001"],
    ("tfgt", "ttfg"): ["FTH001"],
    ("fgt", "ftg"): ["FTH001"],
    ("rfrf", "rrff"): [],  # which call is which, these chunks leave open: one id is there twice
    ("rtrt", "rtrt"): [],
    ("tfgt", "tfgt"): [],
}


@pytest.mark.parametrize(("judged", "made"), TURNS)
def test_another_order_is_found(judged: str, made: str) -> None:
    assert codes(made, judged) == TURNS[judged, made]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from("rtx"), max_size=8), st.permutations("fg"), st.booleans(), st.integers(0, 999))
def test_our_own_handler_keeps_the_turns(turns: list[str], calls: list[str], begun: bool, seed: int) -> None:
    rng, held = Random(seed), list(turns)
    for call in calls:
        held.insert(rng.randint(0, len(held)), call.upper() if begun else call)
    assert codes("".join(held), "".join(held)) == []


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from("rtx"), min_size=1, max_size=8), st.integers(0, 999))
def test_every_order_of_texts_is_found_or_says_the_same(turns: list[str], seed: int) -> None:
    other = Random(seed).sample(turns, len(turns))
    found = codes("".join(other), "".join(turns))
    assert bool(found) == (grouped(turns) != grouped(other))


def grouped(turns: list[str]) -> list[str]:
    """Return the turns without those that go on with the last one."""
    return [turn for n, turn in enumerate(turns) if n == 0 or turns[n - 1] != turn]


DETAILS = {
    "prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12,
    "prompt_tokens_details": {"cached_tokens": 2}, "completion_tokens_details": {"reasoning_tokens": 3},
}  # fmt: skip
# other details of usage in the chunks than in the events -> what is found
USAGE: dict[str, tuple[dict[str, Any], list[str]]] = {
    "the same": (DETAILS, []),
    "more were cached": ({**DETAILS, "prompt_tokens_details": {"cached_tokens": 4}}, ["USE001"]),
    "more reasoned": ({**DETAILS, "completion_tokens_details": {"reasoning_tokens": 4}}, ["USE001"]),
    "no details": ({**DETAILS, "prompt_tokens_details": None, "completion_tokens_details": None}, []),
    "none were cached": ({**DETAILS, "prompt_tokens_details": {"cached_tokens": 0}}, []),
    "other names": ({**DETAILS, "prompt_tokens_details": None, "prompt_cache_hit_tokens": 4}, []),
}


@pytest.mark.parametrize(("usage", "expected"), USAGE.values(), ids=USAGE)
def test_details_of_usage_are_kept(usage: dict[str, Any], expected: list[str]) -> None:
    chunks = [*said("t"), {**HEAD, "choices": [], "usage": DETAILS}]
    report = check(convert(chunks, events="dict"), chunks=[*said("t"), {**HEAD, "choices": [], "usage": usage}])
    assert [one.code for one in report.findings] == expected
