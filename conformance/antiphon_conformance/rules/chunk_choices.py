"""CHT: what is in the choices of a chunk stream: the role, the text, the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from antiphon_conformance.chunks import AnswerTrace, ChoiceAt
from antiphon_conformance.evidence import (
    CHAT_CALLS,
    CHAT_CUT,
    CHAT_NAMED,
    CHAT_TEXT,
    CHAT_TWO_CHOICES,
    LLAMACPP_EMOJI,
    LLAMACPP_TEXT,
    VLLM_LENGTH,
    chat_types,
    stream_client,
)
from antiphon_conformance.read import mapping, quoted, text
from antiphon_conformance.rule import Client, Found, Level, Recording, folded, rule

from .chunks import CHUNKS, WHOLE

FINISHES = ("stop", "length", "tool_calls", "content_filter", "function_call")
REASONING_TAGS = ("<think>", "<thinking>", "<reasoning>", "<thought>")
CALL_TAGS = ("<tool_call>", "<|tool_call", "<function=", "[TOOL_CALLS]", "<|python_tag|>", "<function_call>")
_READERS = Client("programs that leave their loop at the first finish_reason", "lose what comes after it")


@rule(
    "CHT020",
    "role-comes-first",
    Level.SHOULD,
    since="1.0",
    sources=(CHAT_TEXT, CHAT_TWO_CHOICES),
    needs=CHUNKS,
    broken_by=(LLAMACPP_EMOJI,),
    about="answers",
)
def role_comes_first(trace: AnswerTrace) -> Iterator[Found]:
    """The first delta of each choice has `role: "assistant"`."""
    for index, given in sorted(trace.by_choice.items()):
        role = given[0].delta.get("role")
        if role != "assistant":
            yield Found(given[0].at, f"the first delta of choice {index} has role {quoted(role)}")


@rule(
    "CHT021",
    "role-comes-once",
    Level.SHOULD,
    since="1.0",
    sources=(CHAT_TEXT, CHAT_CALLS),
    needs=CHUNKS,
    broken_by=(Recording("chat/zai/pydantic-ai--test-zai-test-zai-thinking-stream.jsonl"),),
    about="answers",
)
def role_comes_once(trace: AnswerTrace) -> Iterator[Found]:
    """No delta of a choice but the first has a role."""
    yield from folded(
        Found(one.at, f"a later delta has role {quoted(one.delta['role'])}")
        for given in trace.by_choice.values()
        for one in given[1:]
        if one.delta.get("role")
    )


@rule(
    "CHT022",
    "first-content-is-empty-text",
    Level.SHOULD,
    since="1.0",
    sources=(CHAT_TEXT,),
    needs=CHUNKS,
    broken_by=(LLAMACPP_TEXT,),
    about="answers",
)
def first_content_is_empty_text(trace: AnswerTrace) -> Iterator[Found]:
    """Where the delta with the role has `content`, and the choice is text, that is a string, not null."""
    yield from folded(
        Found(one.at, "the delta with the role has content null")
        for one in trace.choices
        if one.delta.get("role")
        and one.delta.get("content", "") is None
        and trace.content(one.index)
        and one.index not in trace.called
    )


@rule(
    "CHT023",
    "content-is-text",
    Level.MUST,
    since="1.0",
    sources=(stream_client("ChatCompletionStreamState loses content that is no string"), CHAT_TEXT),
    needs=CHUNKS,
    broken_by=(Recording("chat/mistral/ddtrace--mistral-mistral-v1-chat-completions-post-ccfa08da.jsonl"),),
    about="answers",
)
def content_is_text(trace: AnswerTrace) -> Iterator[Found]:
    """`content` and `refusal` of a delta are strings, or null."""
    yield from folded(
        Found(one.at, f"`{key}` is {quoted(one.delta[key])}")
        for one in trace.choices
        for key in ("content", "refusal")
        if not isinstance(one.delta.get(key), str | None)
    )


@rule(
    "CHT024",
    "content-comes-in-pieces",
    Level.MUST,
    since="1.0",
    sources=(Client("every client that joins deltas", "shows the text over and over"), CHAT_TEXT),
    needs=CHUNKS,
    about="answers",
)
def content_comes_in_pieces(trace: AnswerTrace) -> Iterator[Found]:
    """A delta holds what is new, not the whole text so far."""
    for index, given in sorted(trace.by_choice.items()):
        pieces = [(one.at, piece) for one in given if (piece := text(one.delta.get("content")))]
        if is_cumulative([piece for _, piece in pieces]):
            yield Found(pieces[1][0], f"each delta of choice {index} repeats the whole text so far")


def is_cumulative(pieces: Sequence[str]) -> bool:
    """Return whether each of at least three pieces begins with the one before, and some piece is longer than that."""
    steps = list(pairwise(pieces))
    grows = sum(len(after) > len(before) for before, after in steps)
    return len(steps) >= 2 and grows >= 2 and all(after.startswith(before) for before, after in steps)


@rule(
    "CHT025",
    "thoughts-are-not-content",
    Level.SHOULD,
    since="1.0",
    sources=(Client("every chat window", "shows the thoughts as the answer"), CHAT_TEXT),
    needs=CHUNKS,
    broken_by=(Recording("chat/vllm/llama-stack--inference-0248ff8a1be5ff5ba8.jsonl"),),
    about="answers",
)
def thoughts_are_not_content(trace: AnswerTrace) -> Iterator[Found]:
    """The content does not begin with reasoning between tags, such as `<think>`."""
    for index in sorted(trace.by_choice):
        begun = trace.content(index).lstrip()
        tag = next((tag for tag in REASONING_TAGS if begun.startswith(tag)), "")
        if tag:
            yield Found(_first_text(trace.by_choice[index]), f"the content of choice {index} begins with {tag}")


@rule(
    "CHT026",
    "calls-are-not-content",
    Level.SHOULD,
    since="1.0",
    sources=(Client("every agent loop", "takes the call for the answer, and runs nothing"), CHAT_CALLS),
    needs=CHUNKS,
    about="answers",
)
def calls_are_not_content(trace: AnswerTrace) -> Iterator[Found]:
    """Where tools are offered, calls come as `tool_calls`, and their markup is not in the content."""
    if not trace.asked.get("tools"):
        return
    for index in sorted(trace.by_choice):
        tag = next((tag for tag in CALL_TAGS if tag in trace.content(index)), "")
        if tag:
            yield Found(_first_text(trace.by_choice[index]), f"the content of choice {index} holds {tag}")


def _first_text(given: Sequence[ChoiceAt]) -> int:
    return next((one.at for one in given if text(one.delta.get("content")).strip()), given[0].at)


# --- the end ---------------------------------------------------------------------------------------------------------


@rule(
    "CHT040",
    "one-finish-reason",
    Level.MUST,
    since="1.0",
    sources=(
        stream_client("the accumulated choice keeps finish_reason null"),
        CHAT_TEXT,
        CHAT_CALLS,
    ),
    needs=WHOLE,
    broken_by=(Recording("chat/snowflake/pydantic-ai--test-snowflake-test-snowflake-model-streaming.jsonl"),),
    about="answers",
)
def one_finish_reason(trace: AnswerTrace) -> Iterator[Found]:
    """Each choice has exactly one chunk with a `finish_reason`."""
    if trace.cut:
        yield Found(None, "the stream is cut: it ends without any finish_reason, and without `[DONE]`")
        return
    if not trace.choices:
        yield Found(None, "there is no choice, and so no finish_reason")
    for index, given in sorted(trace.by_choice.items()):
        finishes = [one for one in given if one.choice.get("finish_reason")]
        if not finishes:
            yield Found(None, f"choice {index} never gets a finish_reason")
        elif len(finishes) > 1:
            words = ", ".join(str(one.choice["finish_reason"]) for one in finishes)
            yield Found(finishes[1].at, f"choice {index} gets {len(finishes)} finish_reasons: {words[:80]}")


@rule(
    "CHT041",
    "known-finish-reason",
    Level.SHOULD,
    since="1.0",
    sources=(CHAT_TEXT, CHAT_CUT, chat_types("chat_completion_chunk.Choice.finish_reason")),
    needs=CHUNKS,
    broken_by=(
        Recording(
            "chat/together/openllmetry-js--should-set-attributes-in-span-for-streaming-chat-72904453-recording.jsonl"
        ),
    ),
    about="answers",
)
def known_finish_reason(trace: AnswerTrace) -> Iterator[Found]:
    """`finish_reason` is null, "stop", "length", "tool_calls", "content_filter" or "function_call"."""
    yield from folded(
        Found(one.at, f"`finish_reason` is {quoted(word)}")
        for one in trace.choices
        if (word := one.choice.get("finish_reason")) is not None and word not in FINISHES
    )


@rule(
    "CHT042",
    "finish-reason-is-true",
    Level.MUST,
    since="1.0",
    sources=(
        Client(
            "agent loops that go on while finish_reason is tool_calls",
            "end with the calls not run, or look for calls that are not there",
        ),
        CHAT_CALLS,
        CHAT_NAMED,
    ),
    needs=WHOLE,
    about="answers",
)
def finish_reason_is_true(trace: AnswerTrace) -> Iterator[Found]:
    """`finish_reason` is "tool_calls" where a tool is called and the answer is not cut, and nowhere else; where a
    function was named by `tool_choice`, "stop" is right too."""
    named = isinstance(trace.asked.get("tool_choice"), dict) or "messages" not in trace.asked
    allowed = ("tool_calls", "function_call", "length", "content_filter", *(("stop",) if named else ()))
    for index, given in sorted(trace.by_choice.items()):
        at = next((one.at for one in given if one.finish), None)
        word = trace.finish(index)
        if index in trace.called and word in FINISHES and word not in allowed:
            yield Found(at, f'choice {index} calls a tool, and its finish_reason is "{word}"')
        elif index not in trace.called and word in ("tool_calls", "function_call"):
            yield Found(at, f'choice {index} calls no tool, and its finish_reason is "{word}"')


@rule(
    "CHT043",
    "nothing-after-the-finish",
    Level.MUST,
    since="1.0",
    sources=(_READERS, CHAT_TEXT, CHAT_CALLS),
    needs=CHUNKS,
    broken_by=(
        Recording(
            "chat/together/openllmetry-js--s-in-span-for-stream-completion-when-multiple-tools-cal-2278551756-recording.jsonl"
        ),
    ),
    about="answers",
)
def nothing_after_the_finish(trace: AnswerTrace) -> Iterator[Found]:
    """After its `finish_reason` a choice says nothing more."""
    for index, given in sorted(trace.by_choice.items()):
        ended = next((n for n, one in enumerate(given) if one.choice.get("finish_reason")), len(given))
        late = (one for one in given[ended + 1 :] if one.says)
        yield from folded(Found(one.at, f"choice {index} goes on after its finish_reason") for one in late)


@rule(
    "CHT044",
    "finish-comes-alone",
    Level.SHOULD,
    since="1.0",
    sources=(_READERS, CHAT_TEXT, CHAT_CALLS),
    needs=CHUNKS,
    broken_by=(VLLM_LENGTH,),
    about="answers",
)
def finish_comes_alone(trace: AnswerTrace) -> Iterator[Found]:
    """The delta beside a `finish_reason` holds no output."""
    yield from folded(
        Found(one.at, f"the delta beside the finish_reason says {quoted(one.delta)}")
        for one in trace.choices
        if one.choice.get("finish_reason") and one.says and mapping(one.delta)
    )
