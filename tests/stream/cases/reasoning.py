"""Reasoning: where it is read from, how it is put together, and what is kept of it for the next turn."""

from .build import (
    Case,
    bare,
    call,
    called,
    calls,
    chunk,
    custom,
    cut,
    detail,
    details,
    end,
    failed,
    frag,
    limited,
    said,
    text,
    think,
    thought,
    typed,
)

A1 = '{"a":1}'

FIELDS = [
    *(
        Case(
            f"in {name}",
            [think("one ", field=name), think("two", field=name), text("Hi"), end()],
            [thought("one two"), said("Hi")],
        )
        for name in ("reasoning_content", "reasoning", "reasoning_text")
    ),
    Case(
        "in reasoning_details, as text",
        [
            details(detail("text", index=0, text="one ")),
            details(detail("text", index=0, text="two")),
            text("Hi"),
            end(),
        ],
        [thought("one two"), said("Hi")],
    ),
    Case(
        "in reasoning_details, as a summary",
        [details(detail("summary", index=0, summary="in short")), text("Hi"), end()],
        [thought("in short"), said("Hi")],
    ),
    Case(
        "in thinking_blocks",
        [
            chunk({"thinking_blocks": [{"type": "thinking", "thinking": "one "}]}),
            chunk({"thinking_blocks": [{"type": "thinking", "thinking": "two"}]}),
            text("Hi"),
            end(),
        ],
        [thought("one two"), said("Hi")],
    ),
    Case("and nothing after it", [think("hm"), end()], [thought("hm")]),
    Case(
        "beside empty text",
        [chunk({"reasoning": "hm", "content": ""}), chunk({"reasoning": "", "content": "Hi"}), end()],
        [thought("hm"), said("Hi")],
    ),
    Case(
        "beside null text",
        [
            chunk({"reasoning_content": "hm", "content": None}),
            chunk({"reasoning_content": None, "content": "Hi"}),
            end(),
        ],
        [thought("hm"), said("Hi")],
    ),
    Case("a tag in the content is text", [text("<thi"), text("nk>hm</think>Hi"), end()], [said("<think>hm</think>Hi")]),
    Case(
        "other tags in the content are text",
        [text("<reasoning>hm</reasoning>\n"), text("<tool_call>{}</tool_call>"), end()],
        [said("<reasoning>hm</reasoning>\n<tool_call>{}</tool_call>")],
    ),
    limited("up to the limit", [think("hm"), end("length")], [thought("hm")]),
    failed("up to the cut", [think("hm")], [thought("hm")], "server_error"),
    Case(
        "before a call",
        [think("hm"), call(0, "call_x", "f", A1), end("tool_calls")],
        [thought("hm"), called("f", A1, "call_x")],
    ),
]

TWICE = [
    Case(
        "the same text in two fields is one text",
        [
            chunk({"reasoning_content": "one ", "reasoning": "one "}),
            chunk({"reasoning_content": "two", "reasoning": "two"}),
            text("Hi"),
            end(),
        ],
        [thought("one two"), said("Hi")],
    ),
    Case(
        "the same text in a field and in details",
        [
            details(detail("text", index=0, text="one "), reasoning="one "),
            details(detail("text", index=0, text="two"), reasoning="two"),
            text("Hi"),
            end(),
        ],
        [thought("one two"), said("Hi")],
    ),
    Case(
        "the same text in a field and in summary details",
        [details(detail("summary", index=0, summary="hm"), reasoning_content="hm"), text("Hi"), end()],
        [thought("hm"), said("Hi")],
    ),
    Case(
        "the same text in a field and in thinking_blocks",
        [
            chunk(
                {
                    "reasoning_content": "hm",
                    "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": None}],
                }
            ),
            text("Hi"),
            end(),
        ],
        [thought("hm"), said("Hi")],
    ),
    Case(
        "the same text in all fields",
        [
            details(detail("text", index=0, text="hm"), reasoning_content="hm", reasoning="hm", reasoning_text="hm"),
            text("Hi"),
            end(),
        ],
        [thought("hm"), said("Hi")],
    ),
    Case(
        "different texts are joined",
        [chunk({"reasoning_content": "one ", "reasoning": "two"}), text("Hi"), end()],
        [thought("one two"), said("Hi")],
    ),
    Case(
        "the same text in two chunks is two texts",
        [think("ha"), think("ha"), text("Hi"), end()],
        [thought("haha"), said("Hi")],
    ),
    Case(
        "fields by turns",
        [think("one "), think("two", field="reasoning"), text("Hi"), end()],
        [thought("one two"), said("Hi")],
    ),
]

SIGNED = detail("text", index=0, signature="sig-1")
SEALED = detail("encrypted", index=0, id="rs_theirs", format="ours-v1", data="c2VhbGVk")

KEPT = [
    Case(
        "fragments of one index become one, with the signature",
        [
            details(detail("text", index=0, format="ours-v1", text="one "), reasoning="one "),
            details(detail("text", index=0, text="two"), reasoning="two"),
            details(SIGNED),
            text("Hi"),
            end(),
        ],
        [
            thought(
                "one two",
                sealed=True,
                details=[
                    {"type": "reasoning.text", "index": 0, "format": "ours-v1", "text": "one two", "signature": "sig-1"}
                ],
            ),
            said("Hi"),
        ],
    ),
    Case(
        "fragments of two indexes stay two, in order",
        [
            details(detail("text", index=0, text="one ", signature="sig-1")),
            details(detail("text", index=1, text="two", signature="sig-2")),
            call(0, "call_x", "f", A1),
            end("tool_calls"),
        ],
        [
            thought(
                "one two",
                details=[
                    {"type": "reasoning.text", "index": 0, "text": "one ", "signature": "sig-1"},
                    {"type": "reasoning.text", "index": 1, "text": "two", "signature": "sig-2"},
                ],
            ),
            called("f", A1, "call_x"),
        ],
    ),
    Case(
        "an encrypted piece alone is an item",
        [details(SEALED), text("Hi"), end()],
        [thought("", encrypted="c2VhbGVk", details=[SEALED]), said("Hi")],
    ),
    Case(
        "an encrypted piece and nothing else",
        [details(SEALED), end()],
        [thought("", encrypted="c2VhbGVk", details=[SEALED])],
    ),
    Case(
        "an encrypted piece after the text of its item",
        [think("hm"), details(SEALED), text("Hi"), end()],
        [thought("hm", encrypted="c2VhbGVk"), said("Hi")],
    ),
    Case(
        "a summary and an encrypted piece of one index",
        [
            details(detail("summary", index=0, summary="hm"), reasoning="hm"),
            details(SEALED, reasoning=None),
            text("Hi"),
            end(),
        ],
        [thought("hm", encrypted="c2VhbGVk"), said("Hi")],
        keeps=("c2VhbGVk", "rs_theirs"),
    ),
    Case(
        "two encrypted pieces: the first data",
        [details(SEALED), details({**SEALED, "index": 1, "data": "c2Vjb25k"}), text("Hi"), end()],
        [thought("", encrypted="c2VhbGVk", details=[SEALED, {**SEALED, "index": 1, "data": "c2Vjb25k"}]), said("Hi")],
    ),
    Case(
        "a signature and an encrypted piece: the data",
        [
            details(detail("text", index=0, text="hm", signature="sig-1")),
            details({**SEALED, "index": 1}),
            text("Hi"),
            end(),
        ],
        [thought("hm", encrypted="c2VhbGVk"), said("Hi")],
        keeps=("sig-1", "c2VhbGVk"),
    ),
    Case(
        "a signature while its item is open",
        [think("hm", field="reasoning"), details(SIGNED), text("Hi"), end()],
        [thought("hm", sealed=True), said("Hi")],
        keeps=("sig-1",),
    ),
    Case(
        "a signature alone is an item",
        [details(SIGNED), text("Hi"), end()],
        [thought("", sealed=True), said("Hi")],
        keeps=("sig-1",),
    ),
    Case("nothing signed, nothing sealed", [think("hm"), text("Hi"), end()], [thought("hm", sealed=False), said("Hi")]),
    Case(
        "a signed thinking block",
        [
            chunk(
                {
                    "reasoning_content": "one ",
                    "thinking_blocks": [{"type": "thinking", "thinking": "one ", "signature": None}],
                }
            ),
            chunk(
                {
                    "reasoning_content": "two",
                    "thinking_blocks": [{"type": "thinking", "thinking": "two", "signature": None}],
                }
            ),
            chunk({"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "sig-block"}]}),
            text("Hi"),
            end(),
        ],
        [thought("one two", sealed=True), said("Hi")],
        keeps=("sig-block", "one two"),
    ),
    Case(
        "a redacted thinking block",
        [chunk({"thinking_blocks": [{"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="}]}), text("Hi"), end()],
        [thought("", encrypted="cmVkYWN0ZWQ="), said("Hi")],
        keeps=("cmVkYWN0ZWQ=",),
    ),
]

LATE = [
    Case(
        "a signature never splits a message",
        [think("hm"), text("one "), details(SIGNED), text("two"), end()],
        [thought("hm"), said("one two"), thought("", sealed=True)],
        keeps=("sig-1",),
    ),
    Case(
        "an encrypted piece never splits a message",
        [think("hm"), text("one "), details(SEALED), text("two"), end()],
        [thought("hm"), said("one two"), thought("", encrypted="c2VhbGVk", details=[SEALED])],
    ),
    Case(
        "an encrypted piece never splits a call",
        [think("hm"), call(0, "call_x", "f", '{"a":'), details(SEALED), call(0, args="1}"), end("tool_calls")],
        [thought("hm"), called("f", A1, "call_x"), thought("", encrypted="c2VhbGVk")],
    ),
    Case(
        "its item comes before the next one",
        [think("hm"), text("one"), details(SEALED), call(0, "call_x", "f", A1), end("tool_calls")],
        [thought("hm"), said("one"), thought("", encrypted="c2VhbGVk"), called("f", A1, "call_x")],
    ),
    Case(
        "with the finish",
        [think("hm"), text("one"), chunk({"reasoning_details": [SEALED]}, "stop")],
        [thought("hm"), said("one"), thought("", encrypted="c2VhbGVk")],
    ),
    Case(
        "after the finish",
        [think("hm"), text("one"), end(), details(SEALED)],
        [thought("hm"), said("one"), thought("", encrypted="c2VhbGVk")],
    ),
    Case(
        "behind a custom call",
        [
            think("hm"),
            calls(custom(0, "call_x", "grep", "a")),
            details(SEALED),
            calls(custom(0, text="b")),
            end("tool_calls"),
        ],
        [thought("hm"), typed("grep", "ab", "call_x"), thought("", encrypted="c2VhbGVk")],
    ),
    limited(
        "at the limit",
        [think("hm"), text("one"), details(SEALED), end("length")],
        [thought("hm"), cut(said("one")), thought("", encrypted="c2VhbGVk")],
    ),
]

OF_A_CALL = [
    Case(
        "after its head",
        [
            call(0, "call_x", "f", ""),
            details(detail("encrypted", id="call_x", data="Y2FsbA==")),
            call(0, args=A1),
            end("tool_calls"),
        ],
        [called("f", A1, "call_x")],
        call_keeps=("Y2FsbA==",),
    ),
    Case(
        "of the second call",
        [
            call(0, "call_x", "f", A1),
            call(1, "call_y", "g", '{"b":'),
            details(detail("encrypted", id="call_y", data="Y2FsbA==")),
            call(1, args="2}"),
            end("tool_calls"),
        ],
        [called("f", A1, "call_x"), called("g", '{"b":2}', "call_y")],
        call_keeps=("Y2FsbA==",),
    ),
    Case(
        "in the chunk of its head",
        [
            chunk(
                {
                    "reasoning_details": [detail("encrypted", id="call_x", data="Y2FsbA==")],
                    "tool_calls": [frag(0, "call_x", "f", A1)],
                }
            ),
            end("tool_calls"),
        ],
        None,
        call_keeps=("Y2FsbA==",),
    ),
    Case(
        "before its head",
        [details(detail("encrypted", id="call_x", data="Y2FsbA==")), call(0, "call_x", "f", A1), end("tool_calls")],
        None,
        call_keeps=("Y2FsbA==",),
    ),
]

AS_TEXT = [
    Case(
        "raw text",
        [think("one "), think("two"), text("Hi"), end()],
        [thought("one two"), said("Hi")],
        options={"reasoning": "text"},
    ),
    Case(
        "raw text and an encrypted piece",
        [think("hm"), details(SEALED), text("Hi"), end()],
        [thought("hm", encrypted="c2VhbGVk"), said("Hi")],
        options={"reasoning": "text"},
    ),
    Case(
        "white space before raw text",
        [think("\n"), think("hm"), bare([]), end()],
        [thought("\nhm")],
        options={"reasoning": "text"},
    ),
]


def signed(text: str, sealed: str = "S") -> dict[str, object]:
    return details(detail("text", index=0, signature=sealed), reasoning=text)


# However white space, the signature and the text are cut, it is one text.
WHITE_SPACE = [
    *(
        Case(f"{name}, then the text", [*before, think("one"), end()], [thought("\n one", sealed=True)])
        for name, before in (
            ("white space, a signature", [think("\n "), signed("")]),
            ("a signature, white space", [signed(""), think("\n "), think("")]),
            ("white space with its signature", [signed("\n ")]),
            ("white space around a signature", [think("\n"), signed(" ")]),
        )
    ),
    *(
        Case(f"{name}, then nothing", [*before, text("Hi"), end()], [thought("", sealed=True), said("Hi")])
        for name, before in (
            ("white space, a signature", [think("\n "), signed("")]),
            ("a signature, white space", [signed(""), think("\n ")]),
            ("white space with its signature", [signed("\n ")]),
        )
    ),
    *(
        Case(
            f"in details under text, {name}",
            [text("Hi"), *(details(one) for one in pieces), end()],
            [said("Hi"), thought("", details=[detail("text", index=0, text="\n ", signature="S")])],
        )
        for name, pieces in (
            ("with its signature", [detail("text", index=0, text="\n ", signature="S")]),
            ("before it", [detail("text", index=0, text="\n "), detail("text", index=0, signature="S")]),
            (
                "in pieces",
                [
                    detail("text", index=0, text="\n"),
                    detail("text", index=0, text=" "),
                    detail("text", index=0, signature="S"),
                ],
            ),
        )
    ),
    Case(
        "white space with a signature under text, then the text",
        [text("Hi"), signed(" "), think("one"), end()],
        [said("Hi"), thought("", sealed=True), thought(" one")],
    ),
]
GROUPS = {
    "fields": FIELDS,
    "white space": WHITE_SPACE,
    "twice": TWICE,
    "kept": KEPT,
    "late": LATE,
    "of a call": OF_A_CALL,
    "as text": AS_TEXT,
}
