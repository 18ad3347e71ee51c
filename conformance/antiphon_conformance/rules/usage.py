"""USE: usage."""

from __future__ import annotations

from collections.abc import Iterator

from antiphon_conformance.evidence import CHAT_TEXT, CUT_TEXT, MIXTURE, TEXT
from antiphon_conformance.read import Json, mapping, number, quoted
from antiphon_conformance.rule import Found, Level, Need, rule
from antiphon_conformance.trace import Snapshot, Trace

COUNTS = ("input_tokens", "output_tokens", "total_tokens")
DETAILS = {"input_tokens_details": "cached_tokens", "output_tokens_details": "reasoning_tokens"}


@rule(
    "USE001",
    "usage-where-the-source-gave-it",
    Level.MUST,
    since="1.0",
    sources=(CHAT_TEXT, TEXT),
    needs=(Need.CHUNKS,),
)
def usage_where_the_source_gave_it(trace: Trace) -> Iterator[Found]:
    """Where the chunks gave usage, a completed or incomplete response has its counts: the last ones that are not
    null, with the tokens that were cached and reasoned."""
    terminal, given = trace.terminal, trace.said.usage if trace.said is not None else None
    if trace.said is None or terminal is None or given is None or terminal.type == "response.failed":
        return
    usage = terminal.response.get("usage")
    if usage is None:
        yield Found(terminal.at, "usage is missing, and the chunks gave it")
        return
    told = {key: mapping(usage).get(key) for key in ("input_tokens", "output_tokens")}
    if None not in told.values() and told != _due(given):
        yield Found(terminal.at, f"usage has {told}, the chunks gave {_due(given)}")
        return
    held = {inner: _detail(mapping(usage), key) for key, inner in DETAILS.items()}
    due = _due_details(mapping(trace.said.given))
    if any(count is not None and due.get(inner, count) != count for inner, count in held.items()):
        yield Found(terminal.at, f"the details of usage have {held}, the chunks gave {due}")


def _due(given: Json) -> Json:
    """Return the counts that `given` may become: where total = prompt + completion + reasoning, output has both."""
    prompt, completion = number(given.get("prompt_tokens")) or 0, number(given.get("completion_tokens")) or 0
    reasoning = number(mapping(given.get("completion_tokens_details")).get("reasoning_tokens")) or 0
    apart = bool(reasoning) and given.get("total_tokens") == prompt + completion + reasoning
    return {"input_tokens": prompt, "output_tokens": completion + (reasoning if apart else 0)}


def _due_details(given: Json) -> Json:
    """Return the details in a usage that has them where OpenAI's has. What is 0 may as well be unknown."""
    places = (("cached_tokens", "prompt_tokens_details"), ("reasoning_tokens", "completion_tokens_details"))
    told = {inner: number(mapping(given.get(key)).get(inner)) for inner, key in places}
    return {inner: count for inner, count in told.items() if count is not None and count > 0}


def _detail(usage: Json, key: str) -> int | None:
    return number(mapping(usage.get(key)).get(DETAILS[key]))


@rule("USE002", "totals-add-up", Level.MUST, since="1.0", sources=(TEXT, CUT_TEXT, MIXTURE))
def totals_add_up(trace: Trace) -> Iterator[Found]:
    """`total_tokens` is `input_tokens` and `output_tokens` together; no more tokens are cached than were put in, or
    reasoned than came out (SHOULD, and only asked where no chunks say so)."""
    for snapshot in trace.snapshots:
        counts = [number(mapping(snapshot.response.get("usage")).get(key)) for key in COUNTS]
        put_in, out, total = (count if count is not None else -1 for count in counts)
        if None not in counts and total != put_in + out:
            yield Found(snapshot.at, f"total_tokens is {total}, and {put_in} + {out} is {put_in + out}")
        elif trace.said is None:
            yield from _excessive(snapshot)


def _excessive(snapshot: Snapshot) -> Iterator[Found]:
    """Yield where a part of the tokens is more than all of them."""
    usage = mapping(snapshot.response.get("usage"))
    for key, inner in DETAILS.items():
        whole = key.removesuffix("_details")
        count, of = _detail(usage, key), number(usage.get(whole))
        if count is not None and of is not None and count > of >= 0:
            yield Found(snapshot.at, f"{inner} is {count}, {whole} only {of}", Level.SHOULD)


@rule("USE003", "usage-whole-or-null", Level.MUST, since="1.0", sources=(TEXT, CUT_TEXT, MIXTURE))
def usage_whole_or_null(trace: Trace) -> Iterator[Found]:
    """Usage in the terminal event is null, or has its three counts, `cached_tokens` and `reasoning_tokens`; none of
    them is below 0."""
    terminal = trace.terminal
    if terminal is None or terminal.response.get("usage") is None:
        return
    usage = mapping(terminal.response["usage"])
    told = {key: number(usage.get(key)) for key in COUNTS}
    told |= {f"{key}.{inner}": _detail(usage, key) for key, inner in DETAILS.items()}
    missing = [key for key, count in told.items() if count is None]
    below = [f"{key} {count}" for key, count in told.items() if count is not None and count < 0]
    if missing:
        yield Found(terminal.at, f"usage has no {', '.join(missing)}")
    elif below:
        yield Found(terminal.at, f"usage has {', '.join(below)}, and counts begin at 0")


@rule(
    "USE004",
    "usage-not-made-up",
    Level.MUST,
    since="1.0",
    sources=(CHAT_TEXT, TEXT),
    needs=(Need.CHUNKS,),
)
def usage_not_made_up(trace: Trace) -> Iterator[Found]:
    """Where the chunks gave no usage, it is null, not zeros."""
    terminal = trace.terminal
    if trace.said is not None and trace.said.usage is None and terminal is not None:
        usage = terminal.response.get("usage")
        if usage is not None:
            yield Found(terminal.at, f"usage is {quoted(usage)}, and the chunks gave none")
