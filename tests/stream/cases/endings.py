"""How a stream ends, and what the response is then: every row of the table of endings."""

from typing import Any

from antiphon import Profile

from .build import (
    DONE,
    UNSAID,
    Case,
    Json,
    bare,
    call,
    called,
    calls,
    chunk,
    counted,
    custom,
    cut,
    detail,
    details,
    end,
    failed,
    limited,
    refuse,
    role,
    said,
    sse,
    text,
    think,
    thought,
    tokens,
    typed,
)

A1 = '{"a":1}'
OPTIONAL = {"profile": Profile(name="unfinished", finish_reason_optional=True)}

FINISH_WORDS = [
    *(
        Case(f"{word}: completed", [text("Hi"), end(word)], [said("Hi")])
        for word in ("stop", "tool_calls", "function_call", "eos", "end_turn", "STOP", "whatever comes")
    ),
    *(
        Case(f"{word}, calls: completed", [call(0, "call_x", "f", A1), end(word)], [called("f", A1, "call_x")])
        for word in ("stop", "tool_calls", "function_call", "eos", "end_turn")
    ),
    Case("stop, nothing: completed", [role(), end("stop")], []),
    *(
        limited(f"{word}: incomplete", [text("Hi"), end(word)], [cut(said("Hi"))])
        for word in ("length", "max_tokens", "LENGTH")
    ),
    *(limited(f"{word}, nothing: incomplete", [role(), end(word)], []) for word in ("length", "max_tokens")),
    *(
        limited(f"{word}: filtered", [text("Hi"), end(word)], [cut(said("Hi"))], "content_filter")
        for word in ("content_filter", "safety", "Content_Filter", "SAFETY")
    ),
    *(
        limited(f"{word}, nothing: filtered", [role(), end(word)], [], "content_filter")
        for word in ("content_filter", "safety")
    ),
    *(
        failed(f"{word}: failed", [text("Hi"), end(word)], [cut(said("Hi"))], "server_error")
        for word in ("error", "ERROR")
    ),
    failed("error, nothing: failed", [role(), end("error")], [], "server_error"),
    limited(
        "length: closed items are complete, the open one is not",
        [think("hm"), text("Hi"), call(0, "call_x", "f", '{"a":'), end("length")],
        [thought("hm"), said("Hi"), cut(called("f", '{"a":', "call_x"))],
    ),
    limited(
        "length in the second call",
        [call(0, "call_x", "f", A1), call(1, "call_y", "g", '{"b'), end("length")],
        [called("f", A1, "call_x"), cut(called("g", '{"b', "call_y"))],
    ),
    limited(
        "length: from the first incomplete item on, all are",
        [call(0, "call_x", "f", '{"a":'), text("Hi"), call(1, "call_y", "g", A1), end("length")],
        [cut(called("f", '{"a":', "call_x")), cut(said("Hi")), cut(called("g", A1, "call_y"))],
    ),
    limited(
        "filter after a refusal",
        [refuse("No"), end("content_filter")],
        [cut({"type": "message", "parts": [["refusal", "No"]]})],
        "content_filter",
    ),
    failed(
        "error finish, closed items are complete",
        [text("Hi"), call(0, "call_x", "f", A1), text("!"), end("error")],
        [said("Hi"), called("f", A1, "call_x"), cut(said("!"))],
        "server_error",
    ),
]

SEVERAL = [
    Case("the same twice", [text("Hi"), end(), end()], [said("Hi")]),
    limited("stop, then length", [text("Hi"), end("stop"), end("length")], [cut(said("Hi"))]),
    limited("length, then stop", [text("Hi"), end("length"), end("stop")], [cut(said("Hi"))]),
    limited(
        "length, then content_filter",
        [text("Hi"), end("length"), end("content_filter")],
        [cut(said("Hi"))],
        "content_filter",
    ),
    limited(
        "content_filter, then length",
        [text("Hi"), end("content_filter"), end("length")],
        [cut(said("Hi"))],
        "content_filter",
    ),
    failed(
        "content_filter, then error",
        [text("Hi"), end("content_filter"), end("error")],
        [cut(said("Hi"))],
        "server_error",
    ),
    failed("error, then stop", [text("Hi"), end("error"), end("stop")], [cut(said("Hi"))], "server_error"),
    limited("max_tokens, then unknown", [text("Hi"), end("max_tokens"), end("hm")], [cut(said("Hi"))]),
    Case("content after it still counts", [text("Hi", "stop"), text(" there"), end()], [said("Hi there")]),
    Case(
        "a call after it still counts",
        [call(0, "call_x", "f", A1, finish="tool_calls"), call(1, "call_y", "g", A1, finish="tool_calls")],
        [called("f", A1, "call_x"), called("g", A1, "call_y")],
    ),
    Case(
        "the rest of a call after it",
        [call(0, "call_x", "f", '{"a":', finish="tool_calls"), call(0, args="1}")],
        [called("f", A1, "call_x")],
    ),
    Case("empty chunks after it", [text("Hi"), end(), chunk({}), text(""), bare([])], [said("Hi")]),
    Case("null and empty are none", [text("Hi ", None), text("there", ""), end("stop")], [said("Hi there")]),
    failed(
        "only null and empty: no finish",
        [text("Hi ", None), text("there", "")],
        [cut(said("Hi there"))],
        "server_error",
        says=("finish_reason_optional",),
    ),
]

NO_FINISH = [
    # `[DONE]` after at least one chunk
    Case("[DONE] after text", [text("Hi")], [said("Hi")], done=True),
    Case("[DONE] after a role", [role()], [], done=True),
    Case(
        "[DONE] after a truncated call", [call(0, "call_x", "f", '{"a":')], [called("f", '{"a":', "call_x")], done=True
    ),
    Case(
        "[DONE] after a call without arguments", [call(0, "call_x", "f", "")], [called("f", "{}", "call_x")], done=True
    ),
    limited("[DONE] after length changes nothing", [text("Hi"), end("length")], [cut(said("Hi"))], done=True),
    # a chunk with usage and nothing visible, after the last visible one
    Case(
        "usage alone after text",
        [text("Hi"), counted(tokens(5, 2))],
        [said("Hi")],
        usage={"input_tokens": 5, "output_tokens": 2},
    ),
    Case("usage with an empty choice after text", [text("Hi"), chunk({}, usage=tokens(5, 2))], [said("Hi")]),
    Case("usage with a choice of empty text after text", [text("Hi"), text("", usage=tokens(5, 2))], [said("Hi")]),
    Case("usage alone after a call", [call(0, "call_x", "f", A1), counted(tokens(5, 2))], [called("f", A1, "call_x")]),
    Case("usage alone after reasoning", [think("hm"), counted(tokens(5, 2))], [thought("hm")]),
    Case("usage under x_groq after text", [text("Hi"), chunk({}, x_groq={"usage": tokens(5, 2)})], [said("Hi")]),
    Case("usage alone, and an empty chunk after it", [text("Hi"), counted(tokens(5, 2)), chunk({})], [said("Hi")]),
    Case(
        "usage on all, the last of them not visible",
        [text("Hi", usage=tokens(5, 1)), chunk({}, usage=tokens(5, 2))],
        [said("Hi")],
    ),
    failed(
        "usage only on the visible chunks",
        [text("Hi", usage=tokens(5, 1)), text("!", usage=tokens(5, 2))],
        [cut(said("Hi!"))],
        "server_error",
    ),
    failed(
        "usage before the last visible chunk",
        [text("Hi"), counted(tokens(5, 1)), text("!")],
        [cut(said("Hi!"))],
        "server_error",
    ),
    failed(
        "usage before the last fragment of a call",
        [call(0, "call_x", "f", '{"a":'), counted(tokens(5, 1)), call(0, args="1")],
        [cut(called("f", '{"a":1', "call_x"))],
        "server_error",
    ),
    failed("null usage", [text("Hi"), counted(None)], [cut(said("Hi"))], "server_error"),
    # … before anything visible: only if it has no choices
    Case("usage without choices before anything visible", [role(), counted(tokens(5, 0))], []),
    failed(
        "usage with a choice before anything visible",
        [chunk({"role": "assistant"}, usage=tokens(5, 0))],
        [],
        "server_error",
    ),
    failed("usage without choices, then text", [counted(tokens(5, 0)), text("Hi")], [cut(said("Hi"))], "server_error"),
    # neither
    failed("text and no more", [text("Hi")], [cut(said("Hi"))], "server_error", says=("finish_reason_optional",)),
    failed("a role and no more", [role()], [], "server_error", says=("finish_reason_optional",)),
    failed(
        "a call and no more", [call(0, "call_x", "f", '{"a":')], [cut(called("f", '{"a":', "call_x"))], "server_error"
    ),
    failed(
        "a custom call and no more",
        [calls(custom(0, "call_x", "grep", "-r"))],
        [cut(typed("grep", "-r", "call_x"))],
        "server_error",
    ),
    failed(
        "reasoning and text and no more", [think("hm"), text("Hi")], [thought("hm"), cut(said("Hi"))], "server_error"
    ),
    failed(
        "an encrypted piece and no more",
        [details(detail("encrypted", data="c2VhbGVk"))],
        [thought("", encrypted="c2VhbGVk")],
        "server_error",
    ),
    # the profile says finish_reason_optional
    Case("optional, text", [text("Hi")], [said("Hi")], options=OPTIONAL),
    Case("optional, a call", [call(0, "call_x", "f", A1)], [called("f", A1, "call_x")], options=OPTIONAL),
    failed("optional, no output", [role()], [], "server_error", options=OPTIONAL),
    limited("optional, and yet a finish", [text("Hi"), end("length")], [cut(said("Hi"))], options=OPTIONAL),
    failed(
        "optional, but the source raises",
        [text("Hi")],
        [cut(said("Hi"))],
        "server_error",
        options=OPTIONAL,
        fail=ConnectionError("gone"),
    ),
    # no chunk at all
    failed("no chunk", [], [], "server_error", says=("empty",)),
    failed("no chunk, with [DONE]", [], [], "server_error", done=True),
    failed("no chunk, optional", [], [], "server_error", options=OPTIONAL),
]


def error(message: Any = UNSAID, code: Any = UNSAID, **more: Any) -> Json:
    """Return an error object as providers send it in the stream."""
    fields = {"message": message, "code": code}
    return {"error": {**{key: value for key, value in fields.items() if value is not UNSAID}, **more}}


ERRORS = [
    failed("bare", [error("broken pipe upstream", 500)], [], "server_error", says=("broken pipe upstream",)),
    failed("bare, after text", [text("Hi"), error("broken", 500)], [cut(said("Hi"))], "server_error", says=("broken",)),
    failed(
        "beside empty choices",
        [text("Hi"), bare([], **error("broken", 502))],
        [cut(said("Hi"))],
        "server_error",
        says=("broken",),
    ),
    failed(
        "beside a choice",
        [text("Hi"), chunk({"content": ""}, "error", **error("broken", 502))],
        [cut(said("Hi"))],
        "server_error",
        says=("broken",),
    ),
    failed(
        "beside a choice that says stop",
        [text("Hi"), chunk({}, "stop", **error("broken", 502))],
        [cut(said("Hi"))],
        "server_error",
        says=("broken",),
    ),
    failed(
        "beside a choice with text",
        [text("Hi"), text(" there", **error("broken", 502))],
        [cut(said("Hi there"))],
        "server_error",
        says=("broken",),
    ),
    failed(
        "text",
        [text("Hi"), {"error": "all engines are down"}],
        [cut(said("Hi"))],
        "server_error",
        says=("all engines are down",),
    ),
    failed(
        "after a finish",
        [text("Hi"), end("stop"), error("broken", 500)],
        [cut(said("Hi"))],
        "server_error",
        says=("broken",),
    ),
    failed(
        "after a length finish", [text("Hi"), end("length"), error("broken", 500)], [cut(said("Hi"))], "server_error"
    ),
    failed(
        "later chunks are not read",
        [text("Hi"), error("broken", 500), text(" there"), end()],
        [cut(said("Hi"))],
        "server_error",
    ),
    failed("the first of two", [error("first", 500), error("second", 500)], [], says=("first",), hides=("second",)),
    failed(
        "inside a call",
        [call(0, "call_x", "f", '{"a":'), text("held"), error("broken", 500)],
        [cut(called("f", '{"a":', "call_x")), cut(said("held"))],
        "server_error",
    ),
    failed(
        "with usage before it",
        [text("Hi", usage=tokens(5, 2)), error("broken", 500)],
        [cut(said("Hi"))],
        usage={"input_tokens": 5},
    ),
    failed(
        "a key in its message",
        [error("Unknown key sk-live-0123456789abcdef0123", 401)],
        [],
        "invalid_prompt",
        hides=("sk-live-0123456789abcdef0123",),
    ),
    failed("without a message", [error(code=500)], [], "server_error"),
    failed("with [DONE] after it", [text("Hi"), error("broken", 500)], [cut(said("Hi"))], "server_error", done=True),
]


def coded(name: str, expected: str, *says: str, **more: Any) -> Case:
    return failed(name, [text("Hi"), error(**more)], [cut(said("Hi"))], expected, says=says)


CODES = [
    coded("429", "rate_limit_exceeded", "slow", message="slow down", code=429),
    coded("429 as text", "rate_limit_exceeded", "slow", message="slow down", code="429"),
    coded("rate words in the code", "rate_limit_exceeded", "slow", message="slow down", code="rate_limit_exceeded"),
    coded("rate words in the message", "rate_limit_exceeded", message="Rate limit reached for this model"),
    coded("too many requests", "rate_limit_exceeded", message="Too Many Requests"),
    coded("429 in a status field", "rate_limit_exceeded", message="slow down", code="busy", status_code=429),
    coded(
        "context words in the code",
        "context_length_exceeded",
        message="It is too much.",
        code="context_length_exceeded",
    ),
    coded(
        "context words in the message",
        "context_length_exceeded",
        message="This model's maximum context length is 4096 tokens.",
        code=400,
    ),
    coded(
        "context words of a local server",
        "context_length_exceeded",
        message="request (9000 tokens) exceeds the available context size (4096 tokens)",
        code=400,
    ),
    coded("400", "invalid_prompt", "no such tool", message="no such tool", code=400),
    coded("400 as text", "invalid_prompt", message="no such tool", code="400"),
    coded("404", "invalid_prompt", message="no such model", code=404),
    coded("422", "invalid_prompt", message="unprocessable", code=422),
    coded(
        "400 in a status field, a word for a code",
        "invalid_prompt",
        "tool_use_failed",
        message="bad call",
        code="tool_use_failed",
        status_code=400,
    ),
    coded("500", "server_error", message="oops", code=500),
    coded("502", "server_error", message="oops", code=502),
    coded("503 as text", "server_error", message="oops", code="503"),
    coded("no code", "server_error", "oops", message="oops"),
    coded("null code", "server_error", message="oops", code=None),
    coded("an unknown word", "server_error", "engine_stalled", message="oops", code="engine_stalled"),
    coded(
        "what the provider called it stays",
        "server_error",
        "engine_stalled",
        "oops",
        message="oops",
        code="engine_stalled",
        type="fault",
    ),
]


class HttpFault(Exception):
    """An exception with the HTTP status on it, as the SDKs raise them."""

    def __init__(self, status_code: int, message: str) -> None:
        super().__init__(message)
        self.status_code = status_code


def raising(name: str, exception: BaseException, code: str, *says: str, hides: tuple[str, ...] = ()) -> Case:
    return failed(name, [text("Hi")], [cut(said("Hi"))], code, says=says, hides=hides, fail=exception)


RAISES = [
    raising("connection", ConnectionError("the peer left"), "server_error", "the peer left"),
    raising("time", TimeoutError("no news for 30 s"), "server_error", "no news for 30 s"),
    raising("anything", RuntimeError("engine stalled"), "server_error", "engine stalled"),
    raising("without words", RuntimeError(), "server_error"),
    raising("HTTP 429", HttpFault(429, "slow down"), "rate_limit_exceeded", "slow down"),
    raising("HTTP 400", HttpFault(400, "no such tool"), "invalid_prompt"),
    raising("HTTP 400 about the context", HttpFault(400, "maximum context length exceeded"), "context_length_exceeded"),
    raising("HTTP 401", HttpFault(401, "who are you?"), "invalid_prompt"),
    raising("HTTP 500", HttpFault(500, "oops"), "server_error"),
    raising(
        "no key in the message",
        RuntimeError("refused: Authorization: Bearer sk-live-0123456789abcdef0123 is not known"),
        "server_error",
        hides=("sk-live-0123456789abcdef0123",),
    ),
    raising(
        "no credentials of a URL in the message",
        RuntimeError("cannot reach https://anna:s3cret@models.example.org/v1"),
        "server_error",
        hides=("s3cret",),
    ),
    failed("at once", [], [], "server_error", says=("gone",), fail=ConnectionError("gone")),
    failed(
        "inside a call",
        [call(0, "call_x", "f", '{"a"')],
        [cut(called("f", '{"a"', "call_x"))],
        "server_error",
        fail=ConnectionError("gone"),
    ),
    failed(
        "after a closed item",
        [think("hm"), text("Hi")],
        [thought("hm"), cut(said("Hi"))],
        "server_error",
        fail=ConnectionError("gone"),
    ),
    failed(
        "usage is no finish",
        [text("Hi"), counted(tokens(5, 2))],
        [cut(said("Hi"))],
        "server_error",
        fail=ConnectionError("gone"),
    ),
    # after a finish: as the finish says
    Case("after stop", [text("Hi"), end("stop")], [said("Hi")], fail=ConnectionError("gone")),
    Case(
        "after tool_calls",
        [call(0, "call_x", "f", ""), end("tool_calls")],
        [called("f", "{}", "call_x")],
        fail=ConnectionError("gone"),
    ),
    limited("after length", [text("Hi"), end("length")], [cut(said("Hi"))], fail=ConnectionError("gone")),
    limited(
        "after content_filter",
        [text("Hi"), end("content_filter")],
        [cut(said("Hi"))],
        "content_filter",
        fail=ConnectionError("gone"),
    ),
    failed("after error", [text("Hi"), end("error")], [cut(said("Hi"))], "server_error", fail=ConnectionError("gone")),
    Case(
        "after stop and usage",
        [text("Hi"), end("stop"), counted(tokens(5, 2))],
        [said("Hi")],
        usage={"total_tokens": 7},
        fail=ConnectionError("gone"),
    ),
]

# name, body, what must come of it; bodies hold what no list of chunks can
BODIES: list[tuple[bytes, Case]] = [
    (sse(text("Hi"), end(), DONE), Case("plain", [], [said("Hi")])),
    (sse(text("Hi"), end()), Case("without [DONE]", [], [said("Hi")])),
    (sse(text("Hi"), DONE), Case("without finish", [], [said("Hi")])),
    (sse(text("Hi")), failed("with neither", [], [cut(said("Hi"))], "server_error")),
    (b"", failed("of no bytes", [], [], "server_error")),
    (sse(DONE), failed("of [DONE] alone", [], [], "server_error")),
    (sse(text("Hi"), end(), DONE, text(" there")), Case("nothing after [DONE] is read", [], [said("Hi")])),
    (sse(text("Hi"), DONE, {"error": "late"}), Case("no error after [DONE] is read", [], [said("Hi")])),
    (
        sse(text("Hi"), '{"id":"chatcmpl-1","cho', text(" there"), end(), DONE),
        failed("a line that is not JSON", [], [cut(said("Hi there"))], "server_error", says=("line",)),
    ),
    (
        sse(text("Hi"), "not JSON at all", end("stop")),
        failed("a line that is not JSON, no [DONE]", [], [cut(said("Hi"))], "server_error", says=("line",)),
    ),
    (
        sse(text("Hi"), "[1, 2]", end(), DONE),
        failed("a line that is no object", [], [cut(said("Hi"))], "server_error", says=("line",)),
    ),
    (
        sse("17", text("Hi"), end(), DONE),
        failed("a line that is a number", [], [cut(said("Hi"))], "server_error", says=("line",)),
    ),
    (
        sse(text("Hi"), call(0, "call_x", "f", A1), "oops", text("!"), end(), DONE),
        failed(
            "closed items stay complete", [], [said("Hi"), called("f", A1, "call_x"), cut(said("!"))], "server_error"
        ),
    ),
    (
        sse(text("Hi")) + sse({"message": "the engine stalled", "code": "busy"}, event="error") + sse(text("!"), DONE),
        failed("an error event", [], [cut(said("Hi"))], says=("the engine stalled",)),
    ),
    (
        sse(text("Hi")) + sse({"error": {"message": "the engine stalled", "code": 429}}, event="error"),
        failed(
            "an error event around an error object",
            [],
            [cut(said("Hi"))],
            "rate_limit_exceeded",
            says=("the engine stalled",),
        ),
    ),
    (
        sse(text("Hi")) + sse("the engine stalled", event="error"),
        failed("an error event of plain words", [], [cut(said("Hi"))], "server_error"),
    ),
    (b": waiting\n\n: waiting\n\n" + sse(text("Hi"), end(), DONE), Case("comments are nothing", [], [said("Hi")])),
    (b": waiting\n\n", failed("of comments alone", [], [], "server_error")),
    (sse(text("Hi"), end(), DONE).replace(b"\n", b"\r\n"), Case("CRLF", [], [said("Hi")])),
    (sse(text("Hi"), end(), DONE).replace(b"data: ", b"data:"), Case("no space after the colon", [], [said("Hi")])),
    (sse(text("Hi"), end())[:-2], Case("no blank line at the end", [], [said("Hi")])),
    (b"\xef\xbb\xbf" + sse(text("Hi"), end(), DONE), Case("a byte order mark", [], [said("Hi")])),
    (
        'data: {"choices":[{"index":0,"delta":{"content":"a\u2028b"}}]}\n\n'.encode() + sse(end(), DONE),
        Case("a line separator inside a text", [], [said("a\u2028b")]),
    ),
    (sse(text("Hi"), event="message") + sse(end(), DONE), Case("other event names", [], [said("Hi")])),
    (b"id: 7\nretry: 100\n" + sse(text("Hi"), end(), DONE), Case("ids and retries", [], [said("Hi")])),
]

GROUPS = {
    "finish words": FINISH_WORDS,
    "several finishes": SEVERAL,
    "no finish": NO_FINISH,
    "errors": ERRORS,
    "codes": CODES,
    "raises": RAISES,
}
