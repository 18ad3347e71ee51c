"""USE: usage."""

from __future__ import annotations

from collections.abc import Iterator

from antiphon_conformance.evidence import CHAT_TEXT, CUT_TEXT, MIXTURE, TEXT
from antiphon_conformance.read import Json, mapping, number, quoted
from antiphon_conformance.rule import Found, Level, Need, rule
from antiphon_conformance.trace import Trace

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
    null."""
    terminal, given = trace.terminal, trace.said.usage if trace.said is not None else None
    if terminal is None or given is None or terminal.type == "response.failed":
        return
    usage = terminal.response.get("usage")
    if usage is None:
        yield Found(terminal.at, "usage is missing, and the chunks gave it")
        return
    told = {key: mapping(usage).get(key) for key in ("input_tokens", "output_tokens")}
    if None not in told.values() and told != _due(given):
        yield Found(terminal.at, f"usage has {told}, the chunks gave {_due(given)}")


def _due(given: Json) -> Json:
    """Return the counts that `given` may become: where total = prompt + completion + reasoning, output has both."""
    prompt, completion = number(given.get("prompt_tokens")) or 0, number(given.get("completion_tokens")) or 0
    reasoning = number(mapping(given.get("completion_tokens_details")).get("reasoning_tokens")) or 0
    apart = bool(reasoning) and given.get("total_tokens") == prompt + completion + reasoning
    return {"input_tokens": prompt, "output_tokens": completion + (reasoning if apart else 0)}


@rule("USE002", "totals-add-up", Level.MUST, since="1.0", sources=(TEXT, CUT_TEXT, MIXTURE))
def totals_add_up(trace: Trace) -> Iterator[Found]:
    """`total_tokens` is `input_tokens` and `output_tokens` together."""
    for snapshot in trace.snapshots:
        counts = [number(mapping(snapshot.response.get("usage")).get(key)) for key in COUNTS]
        put_in, out, total = (count if count is not None else -1 for count in counts)
        if None not in counts and total != put_in + out:
            yield Found(snapshot.at, f"total_tokens is {total}, and {put_in} + {out} is {put_in + out}")


@rule("USE003", "usage-whole-or-null", Level.MUST, since="1.0", sources=(TEXT, CUT_TEXT, MIXTURE))
def usage_whole_or_null(trace: Trace) -> Iterator[Found]:
    """Usage of a completed or incomplete response is null, or has its three counts, `cached_tokens` and
    `reasoning_tokens`."""
    terminal = trace.terminal
    if terminal is None or terminal.type == "response.failed" or terminal.response.get("usage") is None:
        return
    usage = mapping(terminal.response["usage"])
    missing = [key for key in COUNTS if number(usage.get(key)) is None]
    missing += [
        f"{key}.{inner}" for key, inner in DETAILS.items() if number(mapping(usage.get(key)).get(inner)) is None
    ]
    if missing:
        yield Found(terminal.at, f"usage has no {', '.join(missing)}")


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
