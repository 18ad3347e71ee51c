"""CHT: whether a chunk stream is what the request asked for, and whether other requests give the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from antiphon_conformance.chunks import AnswerTrace
from antiphon_conformance.evidence import (
    CHAT_CALLS,
    CHAT_LOGPROBS,
    CHAT_TEXT,
    CHAT_TWO_CHOICES,
    LLAMACPP_NAMED,
    chat_types,
)
from antiphon_conformance.exchange import Exchange
from antiphon_conformance.read import Json, listed, mapping, mappings, number, quoted, text
from antiphon_conformance.rule import AnswerNeed, Client, Found, Level, Schema, folded, rule

from .chunks import CHUNKS, WHOLE

LONGEST_SILENCE = 55.0  # seconds
_REFERENCE = "API reference, chat completions"


@rule(
    "CHT070",
    "log-probabilities-as-asked",
    Level.SHOULD,
    since="1.0",
    sources=(CHAT_LOGPROBS, chat_types("ChatCompletionTokenLogprob")),
    needs=CHUNKS,
    about="answers",
)
def log_probabilities_as_asked(trace: AnswerTrace) -> Iterator[Found]:
    """Where `logprobs` was asked for, the choices with text have `logprobs.content`, a list with `token`, `logprob`,
    `bytes` and as many `top_logprobs` as were asked for at most; where it was not, `logprobs` is null."""
    if "messages" not in trace.asked:
        return
    wanted = trace.asked.get("logprobs") is True
    held = [one for one in trace.choices if mapping(one.choice.get("logprobs")).get("content")]
    if wanted and not held and any(text(one.delta.get("content")) for one in trace.choices):
        yield Found(None, "log probabilities were asked for, and there are none")
    if not wanted and held:
        yield Found(held[0].at, "log probabilities were not asked for")
    most = number(trace.asked.get("top_logprobs")) or 0
    yield from folded(
        Found(one.at, problem)
        for one in held
        for entry in listed(mapping(one.choice.get("logprobs")).get("content"))
        if wanted and (problem := _wrong_entry(entry, most))
    )


def _wrong_entry(entry: Any, most: int) -> str:
    """Return what is wrong with one entry, or ""."""
    held = mapping(entry)
    if not isinstance(held.get("token"), str) or not isinstance(held.get("logprob"), int | float):
        return f"an entry is {quoted(entry)}, without token or logprob"
    if "bytes" not in held or not isinstance(held["bytes"], list | None):
        return f"`bytes` of an entry is {quoted(held.get('bytes'))}"
    if len(mappings(held.get("top_logprobs"))) > most or not isinstance(held.get("top_logprobs"), list):
        return f"`top_logprobs` is {quoted(held.get('top_logprobs'))}, where {most} were asked for"
    return ""


@rule(
    "CHT071",
    "as-many-choices-as-asked",
    Level.SHOULD,
    since="1.0",
    sources=(CHAT_TWO_CHOICES, Schema(f"{_REFERENCE}, `n`")),
    needs=WHOLE,
    about="answers",
)
def as_many_choices_as_asked(trace: AnswerTrace) -> Iterator[Found]:
    """There are as many choices as `n` says."""
    wanted = number(trace.asked.get("n")) or 1
    if "messages" in trace.asked and trace.choices and len(trace.by_choice) < wanted:
        yield Found(None, f"{wanted} choices were asked for, and {len(trace.by_choice)} came")


@rule(
    "CHT072",
    "stop-words-stop",
    Level.SHOULD,
    since="1.0",
    sources=(Schema(f"{_REFERENCE}, `stop`: the returned text will not contain the stop sequence"),),
    needs=CHUNKS,
    about="answers",
)
def stop_words_stop(trace: AnswerTrace) -> Iterator[Found]:
    """The content of no choice contains a word that `stop` asks to stop at."""
    stop = trace.asked.get("stop")
    words = [stop] if isinstance(stop, str) else [text(one) for one in listed(stop)]
    for index in sorted(trace.by_choice):
        word = next((word for word in words if word and word in trace.content(index)), "")
        if word:
            yield Found(None, f"choice {index} contains the stop word {quoted(word)}")


@rule(
    "CHT073",
    "token-limit-is-kept",
    Level.SHOULD,
    since="1.0",
    sources=(Schema(f"{_REFERENCE}, `max_completion_tokens`: an upper bound"),),
    needs=WHOLE,
    about="answers",
)
def token_limit_is_kept(trace: AnswerTrace) -> Iterator[Found]:
    """No more tokens come than `max_completion_tokens`, or `max_tokens`, allows."""
    limit = number(trace.asked.get("max_completion_tokens")) or number(trace.asked.get("max_tokens"))
    if not limit:
        return
    counted = max(
        (number(mapping(chunk["usage"]).get("completion_tokens")) or 0 for _, chunk in trace.usages), default=0
    )
    came = counted or max((len(_spoken(trace, index)) for index in trace.by_choice), default=0)
    wanted = limit * (number(trace.asked.get("n")) or 1)
    if came > wanted + (0 if counted else 2):  # a character may come in more deltas than it has tokens
        yield Found(None, f"{limit} tokens were allowed, and {came} came")


def _spoken(trace: AnswerTrace, index: int) -> list[int]:
    return [one.at for one in trace.by_choice[index] if text(one.delta.get("content"))]


@rule(
    "CHT074",
    "tool-choice-is-kept",
    Level.SHOULD,
    since="1.0",
    sources=(Schema(f"{_REFERENCE}, `tool_choice`"), CHAT_CALLS),
    needs=WHOLE,
    broken_by=(LLAMACPP_NAMED,),
    about="answers",
)
def tool_choice_is_kept(trace: AnswerTrace) -> Iterator[Found]:
    """`tool_choice` is kept: "none" calls nothing, "required" calls something, a named function is the one called; and
    without tools nothing is called."""
    choice = trace.asked.get("tool_choice")
    names = [name for _, name, _ in trace.arguments()]
    wanted = text(mapping(mapping(choice).get("function")).get("name"))
    offered = trace.asked.get("tools") or trace.asked.get("functions")
    if names and (choice == "none" or ("messages" in trace.asked and not offered)):
        yield Found(None, f"nothing was to be called, and {quoted(names[0])} is")
    elif wanted and names != [wanted] * len(names):
        yield Found(None, f"{quoted(wanted)} was to be called, and {quoted(names)} is")
    elif (wanted or choice == "required") and not names:
        yield Found(None, f"{quoted(wanted) if wanted else 'a tool'} was to be called, and nothing is")


@rule(
    "CHT075",
    "json-where-asked",
    Level.SHOULD,
    since="1.0",
    sources=(Schema(f"{_REFERENCE}, `response_format`"), Client("programs that ask for JSON", "parse the content")),
    needs=WHOLE,
    about="answers",
)
def json_where_asked(trace: AnswerTrace) -> Iterator[Found]:
    """Where `response_format` asks for JSON and the answer is not cut, the content is a JSON object with the keys that
    the schema requires."""
    format = mapping(trace.asked.get("response_format"))
    if format.get("type") not in ("json_object", "json_schema") or trace.finish() != "stop" or trace.called:
        return
    required = listed(mapping(mapping(format.get("json_schema")).get("schema")).get("required"))
    content = trace.content()
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        yield Found(None, f"JSON was asked for, and the content is {quoted(content)}")
    elif missing := [key for key in required if key not in value]:
        yield Found(None, f"the schema requires {quoted(missing)}, and the content is {quoted(content)}")


# --- other requests ----------------------------------------------------------------------------------------------------


@rule(
    "CHT076",
    "streamed-as-not-streamed",
    Level.SHOULD,
    since="1.0",
    sources=(Schema(f"{_REFERENCE}, `stream`"),),
    needs=(*WHOLE, AnswerNeed.TWIN),
    about="answers",
)
def streamed_as_not_streamed(trace: AnswerTrace) -> Iterator[Found]:
    """The same request without `stream`, with a seed and at temperature 0, gives the same text, calls and
    `finish_reason`."""
    twin = trace.exchange.twin
    if twin is None:
        return
    whole = _json_of(twin)
    choices = mappings(whole.get("choices"))
    if not choices:
        yield Found(
            None, f"the answer that is not streamed is {quoted(twin.body[:200].decode('utf-8', 'replace'), 120)}"
        )
        return
    message = mapping(choices[0].get("message"))
    streamed = {
        "finish_reason": trace.finish(),
        "calls": [(name, arguments) for _, name, arguments in trace.arguments()],
        "content": trace.content(),
    }
    same = {
        "finish_reason": text(choices[0].get("finish_reason")),
        "calls": [_call_in(call) for call in mappings(message.get("tool_calls"))],
        "content": text(message.get("content")),
    }
    for key, value in streamed.items():
        if value != same[key]:
            yield Found(None, f"`{key}` is {quoted(value)} streamed, and {quoted(same[key])} not streamed")


def _call_in(call: Json) -> tuple[str, str]:
    function = mapping(call.get("function"))
    return text(function.get("name")), text(function.get("arguments"))


def _json_of(exchange: Exchange) -> Json:
    try:
        return mapping(json.loads(exchange.body))
    except (ValueError, RecursionError):
        return {}


@rule(
    "CHT077",
    "two-streams-at-once",
    Level.MUST,
    since="1.0",
    sources=(
        Client("every server of two users", "mixes them up, or makes one wait for the other until it gives up"),
        CHAT_TEXT,
    ),
    needs=(AnswerNeed.CHAT, AnswerNeed.BESIDE),
    about="answers",
)
def two_streams_at_once(trace: AnswerTrace) -> Iterator[Found]:
    """Two streams at once both come to their end, each under an id of its own."""
    if trace.exchange.beside is None:
        return
    beside = trace.exchange.beside.trace
    ids = [{text(chunk.get("id")) for _, chunk in one.chunks} - {""} for one in (trace, beside)]
    if trace.chunks and not (beside.chunks and beside.whole):
        said = trace.exchange.beside.message or f"status {trace.exchange.beside.status}"
        yield Found(None, f"beside it another stream did not come to its end: {said}")
    elif ids[0] & ids[1]:
        yield Found(None, f"both streams have the id {quoted(min(ids[0] & ids[1]))}")


@rule(
    "CHT078",
    "no-long-silence",
    Level.SHOULD,
    since="1.0",
    sources=(
        Client("nginx", "proxy_read_timeout is 60 s by default: it closes what is silent for longer"),
        Schema("HTML standard, section 9.2.7: a comment line every 15 seconds or so"),
    ),
    needs=(AnswerNeed.CHAT, AnswerNeed.STREAM),
    about="answers",
)
def no_long_silence(trace: AnswerTrace) -> Iterator[Found]:
    """Once a stream began it is never silent for a minute: where there is nothing to say, a comment is sent."""
    times = [piece.at for piece in trace.exchange.pieces]
    if not times:
        return
    gaps = [after - before for before, after in zip(times, [*times[1:], trace.exchange.seconds], strict=True)]
    if max(gaps) > LONGEST_SILENCE:
        yield Found(None, f"the stream was silent for {max(gaps):.0f} s")
