"""The handler as others use it: the async class method, the family, options that are none, what is replayed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import Response

from antiphon import (
    AnyLLMChatCmplStreamHandler,
    BadInput,
    ChatCmplStreamHandler,
    LiteLLMChatCmplStreamHandler,
    OpenAIChatCmplStreamHandler,
    ProfileNotFound,
    SourceError,
    StrictError,
    aconvert,
    aconvert_sse,
    convert,
    convert_sse,
    to_response,
)
from antiphon.stream.details import SEAL, Details, sealed, unsealed

from .cases.build import Json, call, chunk, counted, end, refuse, text, think, tokens

FAMILY = (
    ChatCmplStreamHandler,
    OpenAIChatCmplStreamHandler,
    LiteLLMChatCmplStreamHandler,
    AnyLLMChatCmplStreamHandler,
)


def asked(**more: Any) -> Response:
    """Return the empty response that openai-agents hands to its handler."""
    fields = {"id": "__fake_id__", "created_at": 1.0, "model": "m-1", "object": "response", "output": [], "tools": []}
    return Response.model_validate(
        {**fields, "tool_choice": "auto", "parallel_tool_calls": False, "top_p": 0.5, **more}
    )


async def arriving(chunks: Sequence[Any], raises: Exception | None = None) -> AsyncIterator[Any]:
    for one in chunks:
        yield ChatCompletionChunk.model_validate(one)
    if raises is not None:
        raise raises


async def handled(handler: type[ChatCmplStreamHandler], chunks: Sequence[Any], **flags: Any) -> list[Any]:
    return [event async for event in handler.handle_stream(asked(), arriving(chunks), **flags)]


@pytest.mark.parametrize("handler", FAMILY)
async def test_handle_stream_echoes_the_response_it_is_given(handler: type[ChatCmplStreamHandler]) -> None:
    events = await handled(handler, [text("Hi"), end(), counted(tokens(3, 4))])
    final = events[-1].response
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    assert (final.model, final.top_p, final.parallel_tool_calls, final.output_text) == ("m-1", 0.5, False, "Hi")
    assert final.id.startswith("resp_")
    assert events[0].response.id == final.id


async def test_handle_stream_takes_the_keywords_of_the_agents_handler() -> None:
    chunks = [text("Hi"), end(), counted({**tokens(3, 4), "cost": 7})]
    events = await handled(
        ChatCmplStreamHandler,
        chunks,
        model="other",
        strict_feature_validation=True,
        preserve_raw_usage=True,
        raise_on_length_truncation=True,
        require_finish_reason=True,
    )
    final = events[-1].response
    assert final.usage.total_tokens == 7
    assert final.provider_data["usage"]["cost"] == 7


async def test_handle_stream_raises_what_the_source_raised_after_the_end() -> None:
    stream = ChatCmplStreamHandler.handle_stream(asked(), arriving([text("Hi")], ConnectionResetError("gone")))
    types = [(await anext(stream)).type for _ in range(10)]
    assert types[-2:] == ["error", "response.failed"]
    with pytest.raises(ConnectionResetError, match="gone"):
        await anext(stream)


@pytest.mark.parametrize(
    ("chunks", "raises"),
    [
        ([end("length")], True),
        ([think("Hm"), end("length")], True),
        ([text("Hi"), end("length")], False),
        ([refuse("No"), end("length")], False),
        ([call(0, "call_x", "f", "{"), end("length")], False),
        ([end("content_filter")], False),
        ([think("Hm"), end("content_filter")], False),
        ([end("stop")], False),
    ],
)
async def test_handle_stream_raises_on_an_answer_that_was_cut_before_it_began(chunks: list[Json], raises: bool) -> None:
    if raises:
        with pytest.raises(SourceError, match="before anything was said"):
            await handled(ChatCmplStreamHandler, chunks, raise_on_length_truncation=True)
        assert (await handled(ChatCmplStreamHandler, chunks))[-1].type == "response.incomplete"
    else:
        asked_for = await handled(ChatCmplStreamHandler, chunks, raise_on_length_truncation=True)
        assert [event.type for event in asked_for] == [
            event.type for event in await handled(ChatCmplStreamHandler, chunks)
        ]


@pytest.mark.parametrize("handler", FAMILY)
def test_the_family_makes_the_same_events(handler: type[ChatCmplStreamHandler]) -> None:
    chunks = [think("Hm"), text("Hi"), call(0, "call_x", "f", "{}"), end("tool_calls")]
    one = handler(events="dict", ids="counted", created_at=0)
    events = [event for each in chunks for event in one.feed(each)] + one.finish()
    assert events == list(convert(chunks, events="dict", ids="counted", created_at=0))


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"events": "xml"}, BadInput, '"openai", "dict" or "sse"'),
        ({"reasoning": "both"}, BadInput, '"summary" or "text"'),
        ({"ids": "serial"}, BadInput, '"random", "counted"'),
        ({"profile": "no-such-provider"}, ProfileNotFound, "known are"),
        ({"request": 7}, BadInput, "create parameters"),
        ({"profile": 7}, BadInput, "a profile is int: it is the name of one, or a `Profile`"),
    ],
)
def test_options_that_are_none_are_refused(options: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        ChatCmplStreamHandler(**options)


@pytest.mark.parametrize("source", ["data: {}", b"data: {}", {"choices": []}])
def test_convert_points_to_the_right_function(source: Any) -> None:
    with pytest.raises(BadInput, match="convert_sse"):
        convert(source)


@pytest.mark.parametrize("body", ["data: {}", {"choices": []}])
def test_convert_sse_points_to_the_right_function(body: Any) -> None:
    with pytest.raises(BadInput, match="convert_sse takes the bytes of an SSE body"):
        convert_sse(body)


@pytest.mark.parametrize("before", [0, 1, 5])
@pytest.mark.parametrize("piece", ["data: {}", {"choices": []}, memoryview(b"data: {}"), 7, None])
def test_a_piece_of_a_body_that_is_none_is_refused(piece: Any, before: int) -> None:
    usual = b'data: {"id": "c", "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": null}]}\n\n'
    with pytest.raises(BadInput, match=f"a piece of an SSE body is an? {type(piece).__name__}: bytes are expected"):
        list(convert_sse([usual] * before + [piece]))


@pytest.mark.parametrize("use", [convert, convert_sse, aconvert, aconvert_sse, to_response])
def test_an_option_that_is_none_is_named_with_those_that_are(use: Any) -> None:
    whole = {"choices": []} if use is to_response else [b""]
    with pytest.raises(TypeError, match="there is no option profil; there are: created_at, events, "):
        use(whole, profil="openai")


def test_a_source_that_cannot_be_iterated_is_refused() -> None:
    source: Any = 7
    with pytest.raises(BadInput, match="iterable"):
        list(convert(source))


async def test_an_async_shell_takes_a_plain_source() -> None:
    events = [event async for event in aconvert([text("Hi"), end()], events="dict")]
    assert events[-1]["type"] == "response.completed"


@pytest.mark.parametrize("whole", [b"nothing", "[]", 7, None])
def test_to_response_refuses_what_is_no_completion(whole: Any) -> None:
    with pytest.raises(BadInput, match="to_response takes a chat completion"):
        to_response(whole)


def test_an_answer_without_choices_has_failed() -> None:
    assert to_response({"id": "x", "choices": []}).status == "failed"
    with pytest.raises(SourceError):
        to_response({"error": {"message": "no", "code": 500}}, raise_on_error=True)


def test_strict_fails_what_has_no_place() -> None:
    handler = ChatCmplStreamHandler(events="dict", strict=True)
    events = [
        *handler.feed(chunk({"audio": {"data": "AA=="}, "content": "Hi"})),
        *handler.feed(end()),
        *handler.finish(),
    ]
    assert events[-1]["type"] == "response.failed"
    assert isinstance(handler.error, StrictError)


def test_a_chunk_that_is_no_object_fails_the_response_at_its_end() -> None:
    events = list(convert([text("Hi"), 7, text("!"), end()], events="dict"))
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["error"]["message"] == "chunk 1 is an int, not an object"
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Hi!"


def test_a_chunk_may_be_json_text() -> None:
    events = list(convert(['{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}'], events="dict"))
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Hi"


def test_a_line_that_the_end_cut_does_not_undo_a_finish() -> None:
    body = (
        b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: {"choices":[],"usa'
    )
    handler = ChatCmplStreamHandler(events="dict")
    assert [*handler.feed_sse(body), *handler.finish()][-1]["type"] == "response.completed"
    assert [code for code, _, _ in handler.warnings] == ["line-cut"]
    assert list(convert_sse(body[:60], events="dict"))[-1]["type"] == "response.failed"


def test_warnings_are_bounded_and_each_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    handler = ChatCmplStreamHandler(events="dict")
    for number in range(300):
        handler.feed({"choices": [{"index": 1, "delta": {"content": "x"}}], "usage": number})
    assert [code for code, _, _ in handler.warnings] == ["other-choice", "usage-unreadable"]
    assert len(caplog.records) == 2


def test_half_a_character_waits_for_the_other_half() -> None:
    cut = [text("Hi \ud83d"), text("\ude00!"), think("\ud83d"), end()]
    final = list(convert(cut, events="dict"))[-1]["response"]
    assert [item["type"] for item in final["output"]] == ["message", "reasoning"]
    assert final["output"][0]["content"][0]["text"] == "Hi \U0001f600!"
    assert final["output"][1]["summary"][0]["text"] == "\ufffd"


@pytest.mark.parametrize(
    ("fragments", "pieces", "content"),
    [
        ([], [], None),
        ([{"type": "reasoning.text", "text": "a"}], [{"type": "reasoning.text", "text": "a"}], None),
        ([{"type": "reasoning.encrypted", "data": "AA"}], [{"type": "reasoning.encrypted", "data": "AA"}], "AA"),
        (
            [{"type": "thinking", "thinking": "a"}, {"type": "thinking", "thinking": "b", "signature": "S"}],
            [{"type": "thinking", "thinking": "ab", "signature": "S"}],
            SEAL,
        ),
    ],
)
def test_what_is_sealed_is_unsealed(fragments: list[Any], pieces: list[Any], content: str | None) -> None:
    merged = Details()
    for fragment in fragments:
        merged.add(fragment)
    made = sealed(merged.pieces())
    assert merged.pieces() == pieces
    assert (made or "").startswith(content or "")
    assert (made is None) == (content is None)
    if content == SEAL:
        assert unsealed(made or "") == pieces


def test_a_foreign_seal_is_left_and_a_damaged_one_refused() -> None:
    assert unsealed("gAAAA") is None
    with pytest.raises(BadInput, match="damaged"):
        unsealed(SEAL + "!!")
