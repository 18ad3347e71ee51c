"""What opens an item and what closes it; choices; white space; order inside one chunk; fields of every wrong type."""

from .build import (
    Case,
    bare,
    call,
    called,
    chunk,
    counted,
    cut,
    end,
    failed,
    frag,
    limited,
    parts,
    refuse,
    role,
    said,
    text,
    think,
    thought,
    tokens,
)

A1 = '{"a":1}'

OPENING = [
    Case("nothing but a role", [role(), end()], []),
    Case(
        "role, null, empty and unknown deltas",
        [role(), text(None), text(""), chunk({}), chunk({"mood": "glad"}), end()],
        [],
    ),
    Case(
        "empty reasoning and refusal",
        [think(""), think(None), refuse(""), refuse(None), text("Hi"), end()],
        [said("Hi")],
    ),
    Case("content in the role chunk", [chunk({"role": "assistant", "content": "Hi"}), end()], [said("Hi")]),
    Case(
        "role on every chunk", [chunk({"role": "assistant", "content": one}) for one in "Hi!"] + [end()], [said("Hi!")]
    ),
    Case("no role at all", [text("Hi"), end()], [said("Hi")]),
    Case("content in the finish chunk", [text("Hi"), text(" there", "stop")], [said("Hi there")]),
    Case(
        "one chunk for all", [chunk({"role": "assistant", "content": "Hi"}, "stop", usage=tokens(3, 1))], [said("Hi")]
    ),
    Case(
        "empty text beside a call",
        [chunk({"content": "", "tool_calls": [frag(0, "call_x", "f", A1)]}), text("", "tool_calls")],
        [called("f", A1, "call_x")],
    ),
    Case("empty chunks in the middle", [text("Hi"), text(""), chunk({}), text(None), text("!"), end()], [said("Hi!")]),
    Case(
        "characters outside the first plane",
        [text("a\U0001f600"), text("\u0301b"), end()],
        [said("a\U0001f600\u0301b")],
    ),
    Case(
        "all fields there, and null",
        [
            chunk(
                {
                    "role": None,
                    "content": "Hi",
                    "refusal": None,
                    "function_call": None,
                    "tool_calls": None,
                    "reasoning_content": None,
                },
                logprobs=None,
            ),
            chunk(
                {
                    "role": None,
                    "content": None,
                    "refusal": None,
                    "function_call": None,
                    "tool_calls": None,
                    "reasoning_content": None,
                },
                "stop",
            ),
        ],
        [said("Hi")],
    ),
]

WHITE_SPACE = [
    Case("alone is no message", [text("\n"), text("  "), end()], []),
    Case("alone is no reasoning", [think("\n\n"), text("Hi"), end()], [said("Hi")]),
    Case("alone is no refusal", [refuse(" "), end()], []),
    Case("waits for text", [text("\n"), text(" "), text("Hi"), end()], [said("\n Hi")]),
    Case("waits for reasoning", [think("\n"), think("hm"), text("Hi"), end()], [thought("\nhm"), said("Hi")]),
    Case("waits for a refusal", [refuse(" "), refuse("No."), end()], [parts(("refusal", " No."))]),
    Case("inside text is kept", [text("a"), text("\n"), text("b"), text(" \n"), end()], [said("a\nb \n")]),
    Case(
        "inside reasoning is kept",
        [think("a"), think("\n\n"), think("b"), think("\n"), text("c"), end()],
        [thought("a\n\nb\n"), said("c")],
    ),
    Case("inside a refusal is kept", [refuse("a"), refuse(" "), refuse("b"), end()], [parts(("refusal", "a b"))]),
    Case(
        "of text is dropped before reasoning", [text("\n"), think("hm"), text("Hi"), end()], [thought("hm"), said("Hi")]
    ),
    Case(
        "of text is dropped before a call",
        [text("\n\n"), call(0, "call_x", "f", A1), end("tool_calls")],
        [called("f", A1, "call_x")],
    ),
    Case(
        "of text is kept before a head",
        [text("\n"), call(0, "call_x", "f", ""), text("Hi"), call(0, args=A1), end("tool_calls")],
        [said("\nHi"), called("f", A1, "call_x")],
    ),
    Case("of text does not close reasoning", [think("one"), text("\n"), think(" two"), end()], [thought("one two")]),
    Case(
        "of text waits through open reasoning",
        [think("one"), text("\n\n"), think(" two"), text("Hi"), end()],
        [thought("one two"), said("\n\nHi")],
    ),
    Case("of reasoning does not close text", [text("one"), think("\n"), text(" two"), end()], [said("one two")]),
    Case(
        "of text between two calls",
        [call(0, "call_x", "f", A1), text("\n"), call(1, "call_y", "g", A1), end("tool_calls")],
        [called("f", A1, "call_x"), called("g", A1, "call_y")],
    ),
    Case("of a refusal does not close a text part", [text("one"), refuse(" "), text(" two"), end()], [said("one two")]),
    Case(
        "of a refusal waits beside a text part",
        [text("one"), refuse("\n"), refuse("No."), end()],
        [parts(("output_text", "one"), ("refusal", "\nNo."))],
    ),
    Case(
        "of several kinds waits for each",
        [think("\n"), text(" "), think("hm"), text("Hi"), end()],
        [thought("\nhm"), said("Hi")],
    ),
    Case("after text before the finish", [text("Hi"), text("\n\n", "stop")], [said("Hi\n\n")]),
    Case("a no-break space is white space", [text("\u00a0"), end()], []),
    Case("a zero-width space is not", [text("\u200b"), end()], [said("\u200b")]),
    Case("a tab and visible text at once", [text("\tHi"), end()], [said("\tHi")]),
    limited("alone, up to the limit", [text("\n"), end("length")], []),
]

KINDS = [
    Case(
        "reasoning, text, call, text: four items",
        [think("hm"), text("See: "), call(0, "call_x", "f", A1), text("So."), end("tool_calls")],
        [thought("hm"), said("See: "), called("f", A1, "call_x"), said("So.")],
    ),
    Case(
        "interleaved thinking",
        [think("a"), text("b"), think("c"), text("d"), end()],
        [thought("a"), said("b"), thought("c"), said("d")],
    ),
    Case("reasoning after text", [text("a"), think("b"), end()], [said("a"), thought("b")]),
    Case(
        "reasoning between calls",
        [call(0, "call_x", "f", A1), think("hm"), call(1, "call_y", "g", A1), end("tool_calls")],
        [called("f", A1, "call_x"), thought("hm"), called("g", A1, "call_y")],
    ),
    Case(
        "reasoning after a call",
        [think("a"), call(0, "call_x", "f", A1), think("b"), end("tool_calls")],
        [thought("a"), called("f", A1, "call_x"), thought("b")],
    ),
    Case("refusal", [refuse("No, "), refuse("sorry."), end()], [parts(("refusal", "No, sorry."))]),
    Case(
        "text and refusal are parts of one message",
        [text("Well. "), refuse("No."), end()],
        [parts(("output_text", "Well. "), ("refusal", "No."))],
    ),
    Case(
        "refusal before text",
        [refuse("No. "), text("But."), end()],
        [parts(("refusal", "No. "), ("output_text", "But."))],
    ),
    Case(
        "text, refusal, text: three parts",
        [text("a"), refuse("b"), text("c"), text("d"), end()],
        [parts(("output_text", "a"), ("refusal", "b"), ("output_text", "cd"))],
    ),
    Case(
        "refusal, call, refusal: two messages",
        [refuse("a"), call(0, "call_x", "f", A1), refuse("b"), end("tool_calls")],
        [parts(("refusal", "a")), called("f", A1, "call_x"), parts(("refusal", "b"))],
    ),
    Case(
        "refusal, reasoning, text",
        [refuse("a"), think("b"), text("c"), end()],
        [parts(("refusal", "a")), thought("b"), said("c")],
    ),
]

ONE_CHUNK = [
    Case(
        "all kinds",
        [
            chunk(
                {
                    "content": "text",
                    "refusal": "refusal",
                    "reasoning_content": "reasoning",
                    "tool_calls": [frag(0, "call_x", "f", A1)],
                },
                "tool_calls",
                usage=tokens(4, 9),
            )
        ],
        [thought("reasoning"), parts(("refusal", "refusal"), ("output_text", "text")), called("f", A1, "call_x")],
        usage={"input_tokens": 4, "output_tokens": 9, "total_tokens": 13},
    ),
    Case(
        "text and a new call",
        [chunk({"content": "See.", "tool_calls": [frag(0, "call_x", "f", A1)]}), end("tool_calls")],
        [said("See."), called("f", A1, "call_x")],
    ),
    Case(
        "the rest of an open call goes before text",
        [
            call(0, "call_x", "f", '{"a":'),
            chunk({"content": "So.", "tool_calls": [frag(0, args="1}")]}),
            end("tool_calls"),
        ],
        [called("f", A1, "call_x"), said("So.")],
    ),
    Case(
        "the rest of one call, text, another call",
        [
            call(0, "call_x", "f", '{"a":'),
            chunk({"content": "So.", "tool_calls": [frag(1, "call_y", "g", A1), frag(0, args="1}")]}),
            end("tool_calls"),
        ],
        [called("f", A1, "call_x"), said("So."), called("g", A1, "call_y")],
    ),
    Case(
        "the arguments of a waiting head go before text",
        [call(0, "call_x", "f", ""), chunk({"content": "So.", "tool_calls": [frag(0, args=A1)]}), end("tool_calls")],
        [called("f", A1, "call_x"), said("So.")],
    ),
    Case(
        "reasoning and text",
        [chunk({"content": "b", "reasoning_content": "a"}), chunk({"reasoning_content": "c", "content": "d"}), end()],
        [thought("a"), said("b"), thought("c"), said("d")],
    ),
    Case("finish and text", [text("Hi", "stop")], [said("Hi")]),
    Case(
        "finish length and text",
        [text("Hi", "length")],
        [cut(said("Hi"))],
        terminal="incomplete",
        reason="max_output_tokens",
    ),
]

CHOICES = [
    Case(
        "others are ignored, with one warning",
        [
            text("A"),
            chunk({"content": "X"}, index=1),
            text("B"),
            chunk({"content": "Y"}, index=1),
            end(),
            chunk({}, "stop", index=1),
        ],
        [said("AB")],
        warned=1,
    ),
    Case(
        "several in one chunk, in any order",
        [bare([{"index": 1, "delta": {"content": "X"}}, {"index": 0, "delta": {"content": "A"}}]), end()],
        [said("A")],
        warned=1,
    ),
    failed(
        "a finish on another ends nothing", [text("A"), chunk({}, "stop", index=1)], [cut(said("A"))], "server_error"
    ),
    Case(
        "a length on another is not ours",
        [text("A"), chunk({"content": "X"}, "length", index=1), end("stop")],
        [said("A")],
    ),
    failed(
        "strict: an error",
        [text("A"), chunk({"content": "X"}, index=1), end()],
        [cut(said("A"))],
        options={"strict": True},
    ),
    Case("strict: one choice is well", [text("A"), end()], [said("A")], options={"strict": True}, warned=False),
    Case(
        "no index is index 0",
        [bare([{"delta": {"content": "A"}}]), bare([{"delta": {}, "finish_reason": "stop"}])],
        [said("A")],
    ),
    Case(
        "none, and a vendor's key",
        [bare([], prompt_filter_results=[{"prompt_index": 0}], id="", model=""), text("A"), end()],
        [said("A")],
    ),
    Case("no key for them", [{"id": "chatcmpl-1", "model": "m"}, text("A"), end()], [said("A")]),
]

MESSAGE = [
    Case(
        "a choice without delta has a message",
        [bare([{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}])],
        [said("Hi")],
    ),
    Case(
        "a message with all kinds",
        [
            bare(
                [
                    {
                        "index": 0,
                        "message": {
                            "content": "b",
                            "reasoning_content": "a",
                            "tool_calls": [
                                {"id": "call_x", "type": "function", "function": {"name": "f", "arguments": A1}}
                            ],
                        },
                        "finish_reason": "tool_calls",
                    }
                ]
            )
        ],
        [thought("a"), said("b"), called("f", A1, "call_x")],
    ),
    Case(
        "a message beside the delta is not read",
        [
            text("Hi", choice={"message": {"content": "Hi"}}),
            text("!", choice={"message": {"content": "Hi!"}}),
            end(choice={"message": {"content": "Hi!"}}),
        ],
        [said("Hi!")],
    ),
    Case(
        "neither delta nor message",
        [text("Hi"), bare([{"index": 0, "finish_reason": None}]), bare([{"index": 0, "finish_reason": "stop"}])],
        [said("Hi")],
    ),
]

CONTENT_LISTS = [
    Case(
        "text parts",
        [text([{"type": "text", "text": "Hi "}, {"type": "text", "text": "there"}]), end()],
        [said("Hi there")],
    ),
    Case("output_text parts", [text([{"type": "output_text", "text": "Hi"}]), end()], [said("Hi")]),
    Case(
        "thinking with a nested list",
        [
            text([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]),
            text([{"type": "text", "text": "Hi"}]),
            end(),
        ],
        [thought("hm"), said("Hi")],
    ),
    Case(
        "thinking and text in one list",
        [
            text([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Hi"}]),
            end(),
        ],
        [thought("hm"), said("Hi")],
    ),
    Case(
        "an empty thinking part",
        [
            text([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]),
            text([{"type": "thinking", "thinking": []}]),
            text("Hi"),
            end(),
        ],
        [thought("hm"), said("Hi")],
    ),
    Case(
        "lists and strings by turns",
        [text([{"type": "text", "text": "a"}]), text("b"), text([{"type": "text", "text": "c"}]), end()],
        [said("abc")],
    ),
    Case("an empty list", [text([]), text("Hi"), end()], [said("Hi")]),
    Case("white space in a list", [text([{"type": "text", "text": "\n"}]), end()], []),
    Case(
        "a list with unusable entries",
        [text([None, {"type": "text"}, {"type": "text", "text": None}, {"type": "text", "text": "Hi"}]), end()],
        [said("Hi")],
    ),
]

ILL_TYPED = [
    Case("choices null", [bare(None), text("Hi"), end()], [said("Hi")]),
    Case("choices an object", [bare({"index": 0, "delta": {}}), text("Hi"), end()], [said("Hi")]),
    Case("choices a string", [bare("none"), text("Hi"), end()], [said("Hi")]),
    Case("choices of nothing usable", [bare([None, "x", 3]), text("Hi"), end()], [said("Hi")]),
    Case(
        "an unusable choice beside ours", [bare([None, {"index": 0, "delta": {"content": "Hi"}}]), end()], [said("Hi")]
    ),
    Case("delta null", [chunk(None), text("Hi"), chunk(None, "stop")], [said("Hi")]),
    Case("delta a list", [chunk([]), text("Hi"), chunk([1], "stop")], [said("Hi")]),
    Case("choice index as text", [chunk({"content": "Hi"}, index="0"), end(index="0")], [said("Hi")]),
    Case("choice index as a fraction", [chunk({"content": "Hi"}, index=0.0), end(index=0.0)], [said("Hi")]),
    Case("choice index null", [chunk({"content": "Hi"}, index=None), end(index=None)], [said("Hi")]),
    Case("reasoning an object", [think({"a": 1}), text("Hi"), end()], [said("Hi")]),
    Case("finish_reason a number", [text("Hi"), end(3), end("stop")], [said("Hi")]),
    Case("finish_reason false", [text("Hi"), end(False), end("stop")], [said("Hi")]),
    Case("usage a string", [text("Hi"), end(usage="12")], [said("Hi")], usage=None),
    Case("usage a list", [text("Hi"), end(usage=[1, 2])], [said("Hi")], usage=None),
    Case("usage a number", [text("Hi"), end(), bare([], usage=7)], [said("Hi")], usage=None),
    Case("logprobs a list", [text("Hi", choice={"logprobs": []}), end()], [said("Hi")]),
    Case(
        "logprobs of nothing usable",
        [text("Hi", choice={"logprobs": {"content": [None, 3, "x", {}]}}), end()],
        [said("Hi")],
    ),
    Case("model, id and fingerprint numbers", [text("Hi", model=3, id=4, system_fingerprint=5), end()], [said("Hi")]),
    Case("service_tier an object", [text("Hi", service_tier={"a": 1}), end()], [said("Hi")]),
    Case("annotations a string", [text("Hi"), chunk({"annotations": "x"}), end()], [said("Hi")]),
    Case("citations of nothing usable", [text("Hi", citations=[None, 3, {}]), end()], [said("Hi")]),
    Case("reasoning_details a string", [chunk({"reasoning_details": "x"}), text("Hi"), end()], [said("Hi")]),
    Case(
        "reasoning_details of nothing usable",
        [chunk({"reasoning_details": [None, 3, "x", {}]}), text("Hi"), end()],
        [said("Hi")],
    ),
    Case(
        "thinking_blocks of nothing usable",
        [chunk({"thinking_blocks": [None, 3, "x", {}]}), text("Hi"), end()],
        [said("Hi")],
    ),
    Case("x_groq a string", [text("Hi", x_groq="x"), end()], [said("Hi")]),
    Case("error null", [text("Hi", error=None), end(error=None)], [said("Hi")]),
    Case(
        "details of usage strings",
        [text("Hi"), counted(tokens(1, 2, prompt_tokens_details="x", completion_tokens_details=[])), end()],
        [said("Hi")],
        usage={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    ),
]

GROUPS = {
    "opening": OPENING,
    "white space": WHITE_SPACE,
    "kinds of item": KINDS,
    "one chunk": ONE_CHUNK,
    "choices": CHOICES,
    "message": MESSAGE,
    "content lists": CONTENT_LISTS,
    "ill-typed": ILL_TYPED,
}
