"""Tool calls: names and ids, arguments, kinds, what is held back, what comes too late."""

from .build import (
    Case,
    bare,
    call,
    called,
    calls,
    chunk,
    custom,
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
    typed,
)

A1, B2, C3 = '{"a":1}', '{"b":2}', '{"c":3}'
DONE_CALLS = end("tool_calls")

NAMES = [
    Case(
        "pieces join",
        [call(0, "call_x", "look"), call(0, name="_up"), call(0, name="_word"), call(0, args=A1), DONE_CALLS],
        [called("look_up_word", A1, "call_x")],
    ),
    Case(
        "a piece equal to the name so far is a repetition",
        [call(0, "call_x", "dig"), call(0, name="dig"), call(0, name="dig", args=A1), DONE_CALLS],
        [called("dig", A1, "call_x")],
    ),
    Case(
        "a piece that starts with the name so far replaces it",
        [call(0, "call_x", "re"), call(0, name="read"), call(0, name="read_file"), call(0, args=A1), DONE_CALLS],
        [called("read_file", A1, "call_x")],
    ),
    Case(
        "the same name after the announcement is no news",
        [call(0, "call_x", "dig", '{"a":'), call(0, name="dig", args="1}"), DONE_CALLS],
        [called("dig", A1, "call_x")],
        warned=False,
    ),
    Case(
        "control-token residue is cut",
        [call(0, "call_x", "look_up<|channel|>commentary", A1), DONE_CALLS],
        [called("look_up", A1, "call_x")],
    ),
    Case(
        "control-token residue in a piece of its own is cut",
        [call(0, "call_x", "look_up"), call(0, name="<|message|>"), call(0, args=A1), DONE_CALLS],
        [called("look_up", A1, "call_x")],
    ),
    Case(
        "ids are made where none come",
        [calls(frag(0, None, "f", A1), frag(1, "", "g", B2), frag(2, name="h", args=C3)), DONE_CALLS],
        [called("f", A1), called("g", B2), called("h", C3)],
    ),
    Case(
        "a call id is not the item's id",
        [call(0, "fc_of_theirs", "f", A1), DONE_CALLS],
        [called("f", A1, "fc_of_theirs")],
    ),
]

ARGUMENTS = [
    Case("whole", [call(0, "call_x", "f", A1), DONE_CALLS], [called("f", A1, "call_x")]),
    Case("whole, with the finish", [call(0, "call_x", "f", A1, finish="tool_calls")], [called("f", A1, "call_x")]),
    Case(
        "one character at a time",
        [call(0, "call_x", "f"), *(call(0, args=one) for one in '{"q":"a \\"b\\" {c}"}'), DONE_CALLS],
        [called("f", '{"q":"a \\"b\\" {c}"}', "call_x")],
    ),
    Case(
        "unicode, escaped and not",
        [
            call(0, "call_x", "f", '{"q":"gr'),
            call(0, args="\u00fc\u00df \\ud83d"),
            call(0, args='\\ude00 \U0001f600"}'),
            DONE_CALLS,
        ],
        [called("f", '{"q":"gr\u00fc\u00df \\ud83d\\ude00 \U0001f600"}', "call_x")],
    ),
    Case(
        "an object is serialised",
        [call(0, "call_x", "f", {"x": 2, "y": [True, None]}), DONE_CALLS],
        [called("f", '{"x": 2, "y": [true, null]}', "call_x")],
    ),
    Case(
        "an object is serialised by the defaults of json.dumps",
        [call(0, "call_x", "f", {"q": "\u00fc"}), DONE_CALLS],
        [called("f", '{"q": "\\u00fc"}', "call_x")],
    ),
    Case(
        "null is nothing",
        [call(0, "call_x", "f", None), call(0, args=A1), call(0, args=None), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case("{} alone is the delta", [call(0, "call_x", "f", "{}"), DONE_CALLS], [called("f", "{}", "call_x")]),
    Case(
        "{} in two fragments",
        [call(0, "call_x", "f", "{"), call(0, args="}"), DONE_CALLS],
        [called("f", "{}", "call_x")],
    ),
    Case(
        "{} first is dropped if more comes",
        [call(0, "call_x", "f", "{}"), call(0, args='{"a"'), call(0, args=":1}"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "an empty object first is dropped if more comes",
        [call(0, "call_x", "f", {}), call(0, args='{"a"'), call(0, args=":1}"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "{} first, then empty fragments",
        [call(0, "call_x", "f", "{}"), call(0, args=""), call(0, args=None), DONE_CALLS],
        [called("f", "{}", "call_x")],
    ),
    Case(
        "{} of one call, arguments of the next",
        [call(0, "call_x", "f", "{}"), call(1, "call_y", "g", B2), DONE_CALLS],
        [called("f", "{}", "call_x"), called("g", B2, "call_y")],
    ),
    Case(
        "{} is not dropped because another fragment is exactly {}",
        [call(0, "call_x", "f", '{"a":'), call(0, args="{}"), call(0, args="}"), DONE_CALLS],
        [called("f", '{"a":{}}', "call_x")],
    ),
    Case(
        "none become {} in a completed call",
        [call(0, "call_x", "f", ""), DONE_CALLS],
        [called("f", "{}", "call_x")],
    ),
    Case(
        "none ever given become {} in a completed call",
        [call(0, "call_x", "f"), DONE_CALLS],
        [called("f", "{}", "call_x")],
    ),
    Case(
        "none, in two calls",
        [calls(frag(0, "call_x", "f", ""), frag(1, "call_y", "g", "")), DONE_CALLS],
        [called("f", "{}", "call_x"), called("g", "{}", "call_y")],
    ),
    limited(
        "none stay none in an incomplete call",
        [call(0, "call_x", "f", ""), end("length")],
        [cut(called("f", "", "call_x"))],
    ),
    failed(
        "none stay none when the source raises",
        [call(0, "call_x", "f", "")],
        [cut(called("f", "", "call_x"))],
        "server_error",
        fail=ConnectionError("gone"),
    ),
    failed(
        "none stay none when an error follows the finish",
        [call(0, "call_x", "f", ""), DONE_CALLS, {"error": {"message": "broken", "code": 500}}],
        [cut(called("f", "", "call_x"))],
        "server_error",
    ),
    Case(
        "truncated under a success finish: verbatim and completed",
        [call(0, "call_x", "f", '{"a":"half'), DONE_CALLS],
        [called("f", '{"a":"half', "call_x")],
    ),
    Case(
        "truncated under stop",
        [call(0, "call_x", "f", '{"a":'), end("stop")],
        [called("f", '{"a":', "call_x")],
    ),
    limited(
        "truncated under length",
        [call(0, "call_x", "f", '{"a":"half'), end("length")],
        [cut(called("f", '{"a":"half', "call_x"))],
    ),
    failed(
        "truncated by the end of the stream",
        [call(0, "call_x", "f", '{"a":"half')],
        [cut(called("f", '{"a":"half', "call_x"))],
        "server_error",
        says=("finish_reason_optional",),
    ),
    Case(
        "a number has no end: text is held back to the end",
        [call(0, "call_x", "f", "12"), text("after"), call(0, args="3"), DONE_CALLS],
        [called("f", "123", "call_x"), said("after")],
    ),
    Case(
        "an array ends",
        [call(0, "call_x", "f", "[1,"), text("after"), call(0, args="2]"), DONE_CALLS],
        [called("f", "[1,2]", "call_x"), said("after")],
    ),
    Case(
        "a string ends",
        [call(0, "call_x", "f", '"a\\"'), text("after"), call(0, args='b"'), DONE_CALLS],
        [called("f", '"a\\"b"', "call_x"), said("after")],
    ),
    Case(
        "brackets in strings do not end it",
        [call(0, "call_x", "f", '{"a":"}'), text("after"), call(0, args='"}'), DONE_CALLS],
        [called("f", '{"a":"}"}', "call_x"), said("after")],
    ),
    Case(
        "a backslash at a cut does not end a string",
        [call(0, "call_x", "f", '{"a":"\\'), text("after"), call(0, args='"}"}'), DONE_CALLS],
        [called("f", '{"a":"\\"}"}', "call_x"), said("after")],
    ),
    Case(
        "white space before the arguments",
        [call(0, "call_x", "f", "\n "), call(0, args=A1), DONE_CALLS],
        [called("f", {"a": 1}, "call_x")],
    ),
    Case(
        "nothing but white space",
        [call(0, "call_x", "f", " "), call(0, args="\n"), DONE_CALLS],
        [called("f", {}, "call_x")],
    ),
    limited(
        "nothing but white space, cut by the limit",
        [call(0, "call_x", "f", " "), end("length")],
        None,
    ),
]

# What comes for a call that is closed.
CLOSED = [
    Case(
        "white space is dropped",
        [call(0, "call_x", "f", A1), text("Now"), call(0, args=" \n"), text(" this."), DONE_CALLS],
        [called("f", A1, "call_x"), said("Now this.")],
    ),
    Case(
        "a repetition while it is still open is dropped",
        [call(0, "call_x", "f", A1), call(0, "call_x", "f", A1), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "an empty fragment is nothing",
        [call(0, "call_x", "f", A1), text("Now"), call(0, args=""), text(" this."), DONE_CALLS],
        [called("f", A1, "call_x"), said("Now this.")],
    ),
    Case(
        "a repetition of what it has is dropped",
        [call(0, "call_x", "f", A1), text("Now"), call(0, "call_x", args=A1), text(" this."), DONE_CALLS],
        [called("f", A1, "call_x"), said("Now this.")],
    ),
    failed(
        "anything else fails the response at its end",
        [call(0, "call_x", "f", A1), text("Now"), call(0, args="}"), text(" this."), DONE_CALLS],
        [called("f", A1, "call_x"), cut(said("Now this."))],
        "server_error",
        says=("tool call 0",),
    ),
    failed(
        "anything else for the first of two",
        [call(0, "call_x", "f", A1), call(1, "call_y", "g", B2), text("!"), call(0, args=',"z":9}'), DONE_CALLS],
        [called("f", A1, "call_x"), called("g", B2, "call_y"), cut(said("!"))],
        "server_error",
        says=("tool call 0",),
    ),
    failed(
        "anything else for the second of two",
        [call(0, "call_x", "f", A1), call(1, "call_y", "g", B2), text("!"), call(1, args="garbage"), DONE_CALLS],
        [called("f", A1, "call_x"), called("g", B2, "call_y"), cut(said("!"))],
        "server_error",
        says=("tool call 1",),
    ),
    failed(
        "anything else, with [DONE] and no finish",
        [call(0, "call_x", "f", A1), text("Now"), call(0, args="}")],
        [called("f", A1, "call_x"), cut(said("Now"))],
        "server_error",
        says=("tool call 0",),
        done=True,
    ),
]

# Until a call has a name and its arguments begin, nothing is announced or closed for it.
WAITING = [
    Case(
        "text goes before a head",
        [call(0, "call_x", "f", ""), text("First "), text("this."), call(0, args=A1), DONE_CALLS],
        [said("First this."), called("f", A1, "call_x")],
    ),
    Case(
        "a head does not close a message",
        [text("One, "), call(0, "call_x", "f", ""), text("two."), call(0, args=A1), DONE_CALLS],
        [said("One, two."), called("f", A1, "call_x")],
    ),
    Case(
        "reasoning and refusal go before a head",
        [call(0, "call_x", "f", ""), think("hm"), refuse("No."), call(0, args=A1), DONE_CALLS],
        [thought("hm"), parts(("refusal", "No.")), called("f", A1, "call_x")],
    ),
    Case(
        "text goes before arguments without a name",
        [call(0, "call_x", args=A1), text("First this."), call(0, name="f"), DONE_CALLS],
        [said("First this."), called("f", A1, "call_x")],
    ),
    Case(
        "a call without arguments comes at the end",
        [call(0, "call_x", "f", ""), text("First this."), DONE_CALLS],
        [said("First this."), called("f", "{}", "call_x")],
    ),
    Case(
        "all heads first",
        [
            calls(frag(0, "call_x", "f", ""), frag(1, "call_y", "g", ""), frag(2, "call_z", "h", "")),
            call(0, args=A1),
            call(1, args=B2),
            call(2, args=C3),
            DONE_CALLS,
        ],
        [called("f", A1, "call_x"), called("g", B2, "call_y"), called("h", C3, "call_z")],
    ),
    Case(
        "all heads first, arguments the other way round",
        [
            calls(frag(0, "call_x", "f", ""), frag(1, "call_y", "g", ""), frag(2, "call_z", "h", "")),
            call(2, args=C3),
            call(1, args=B2),
            call(0, args=A1),
            DONE_CALLS,
        ],
        [called("f", A1, "call_x"), called("g", B2, "call_y"), called("h", C3, "call_z")],
    ),
    Case(
        "a whole call waits for a head before it",
        [call(0, "call_x", "f", ""), call(1, "call_y", "g", B2), DONE_CALLS],
        [called("f", "{}", "call_x"), called("g", B2, "call_y")],
    ),
    Case(
        "a whole call waits for a nameless one before it",
        [call(0, "call_x", args=A1), call(1, "call_y", "g", B2), text("Text."), call(0, name="f"), DONE_CALLS],
        [said("Text."), called("f", A1, "call_x"), called("g", B2, "call_y")],
    ),
    Case(
        "calls that were ready, and one that is ready in the same chunk",
        [
            calls(frag(0, "call_x", "f", ""), frag(1, "call_y", "g", B2), frag(2, "call_z", "h", "")),
            call(0, args='{"a":'),
            calls(frag(2, args=C3), frag(0, args="1}")),
            DONE_CALLS,
        ],
        [called("f", A1, "call_x"), called("g", B2, "call_y"), called("h", C3, "call_z")],
    ),
    Case(
        "all that waited are ready in one chunk",
        [
            calls(frag(0, "call_x", "f", ""), frag(1, "call_y", "g", B2), frag(2, "call_z", "h", "")),
            calls(frag(2, args=C3), frag(0, args=A1)),
            DONE_CALLS,
        ],
        [called("f", A1, "call_x"), called("g", B2, "call_y"), called("h", C3, "call_z")],
    ),
    failed(
        "waiting calls follow as incomplete when the stream is cut",
        [call(0, "call_x", "f", '{"a":'), call(1, "call_y", "g", ""), call(2, "call_z", "h", C3)],
        [
            cut(called("f", '{"a":', "call_x")),
            cut(called("g", "", "call_y")),
            cut(called("h", C3, "call_z")),
        ],
        "server_error",
    ),
]

# Inside a call whose arguments are not complete, all else is held back, in order.
HELD = [
    Case(
        "text",
        [call(0, "call_x", "f", '{"a":'), text("Now "), text("this."), call(0, args="1}"), DONE_CALLS],
        [called("f", A1, "call_x"), said("Now this.")],
    ),
    Case(
        "reasoning",
        [call(0, "call_x", "f", '{"a":'), think("hm"), call(0, args="1}"), think(" so"), DONE_CALLS],
        [called("f", A1, "call_x"), thought("hm so")],
    ),
    Case(
        "refusal",
        [call(0, "call_x", "f", '{"a":'), refuse("No."), call(0, args="1}"), DONE_CALLS],
        [called("f", A1, "call_x"), parts(("refusal", "No."))],
    ),
    Case(
        "a call",
        [call(0, "call_x", "f", '{"a":'), call(1, "call_y", "g", B2), call(0, args="1}"), DONE_CALLS],
        [called("f", A1, "call_x"), called("g", B2, "call_y")],
    ),
    Case(
        "all of them, in order",
        [
            call(0, "call_x", "f", '{"a":'),
            call(1, "call_y", "g", B2),
            think("hm"),
            text("so"),
            refuse("no"),
            call(0, args="1"),
            text("yes"),
            call(0, args="}"),
            text("!"),
            DONE_CALLS,
        ],
        [
            called("f", A1, "call_x"),
            called("g", B2, "call_y"),
            thought("hm"),
            parts(("output_text", "so"), ("refusal", "no"), ("output_text", "yes!")),
        ],
    ),
    Case(
        "text, then a call, then text",
        [
            call(0, "call_x", "f", '{"a":'),
            text("one"),
            call(1, "call_y", "g", B2),
            text("two"),
            call(0, args="1}"),
            DONE_CALLS,
        ],
        [called("f", A1, "call_x"), said("one"), called("g", B2, "call_y"), said("two")],
    ),
    Case(
        "a held call that is itself incomplete holds what follows it",
        [
            call(0, "call_x", "f", '{"a":'),
            call(1, "call_y", "g", '{"b":'),
            text("two"),
            call(0, args="1}"),
            text(" three"),
            call(1, args="2}"),
            DONE_CALLS,
        ],
        [called("f", A1, "call_x"), called("g", B2, "call_y"), said("two three")],
    ),
    Case(
        "white space is not an item when it is let go",
        [call(0, "call_x", "f", '{"a":'), text("\n"), call(0, args="1}"), text(" "), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "white space before held text is kept",
        [call(0, "call_x", "f", '{"a":'), text("\n"), text("Hi"), call(0, args="1}"), DONE_CALLS],
        [called("f", A1, "call_x"), said("\nHi")],
    ),
    Case(
        "three calls, interleaved",
        [
            calls(frag(0, "call_x", "f", ""), frag(1, "call_y", "g", ""), frag(2, "call_z", "h", "")),
            calls(frag(2, args='{"c"'), frag(1, args='{"b"'), frag(0, args='{"a"')),
            calls(frag(1, args=":2}"), frag(2, args=":3}")),
            call(0, args=":1}"),
            DONE_CALLS,
        ],
        [called("f", A1, "call_x"), called("g", B2, "call_y"), called("h", C3, "call_z")],
    ),
    Case(
        "to the success finish",
        [call(0, "call_x", "f", '{"a":'), text("Now this."), DONE_CALLS],
        [called("f", '{"a":', "call_x"), said("Now this.")],
    ),
    limited(
        "to the limit",
        [call(0, "call_x", "f", '{"a":'), text("Now this."), end("length")],
        [cut(called("f", '{"a":', "call_x")), cut(said("Now this."))],
    ),
    failed(
        "to the cut",
        [call(0, "call_x", "f", '{"a":'), text("Now this."), call(1, "call_y", "g", B2)],
        [cut(called("f", '{"a":', "call_x")), cut(said("Now this.")), cut(called("g", B2, "call_y"))],
        "server_error",
    ),
    failed(
        "to the break",
        [text("Go: "), call(0, "call_x", "f", '{"a":'), text("Now this.")],
        [said("Go: "), cut(called("f", '{"a":', "call_x")), cut(said("Now this."))],
        "server_error",
        says=("the peer left",),
        fail=ConnectionError("the peer left"),
    ),
]

KINDS = [
    Case(
        "legacy function_call",
        [
            chunk({"function_call": {"name": "f", "arguments": ""}}),
            chunk({"function_call": {"arguments": '{"a"'}}),
            chunk({"function_call": {"arguments": ":1}"}}),
            end("function_call"),
        ],
        [called("f", A1)],
    ),
    Case(
        "legacy function_call, whole, after text",
        [text("So."), chunk({"function_call": {"name": "f", "arguments": A1}}, "function_call")],
        [said("So."), called("f", A1)],
    ),
    Case(
        "legacy function_call between texts",
        [text("So."), chunk({"function_call": {"name": "f", "arguments": A1}}), text("Done."), end("stop")],
        [said("So."), called("f", A1), said("Done.")],
    ),
    Case(
        "legacy function_call without arguments",
        [chunk({"function_call": {"name": "f"}}), end("function_call")],
        [called("f", "{}")],
    ),
    Case(
        "legacy function_call null is nothing",
        [chunk({"function_call": None, "content": "Hi"}), end()],
        [said("Hi")],
    ),
    Case(
        "legacy function_call beside the same in tool_calls",
        [
            chunk({"function_call": {"name": "f", "arguments": ""}, "tool_calls": [frag(0, "call_x", "f", "")]}),
            chunk({"function_call": {"arguments": A1}, "tool_calls": [frag(0, args=A1)]}),
            DONE_CALLS,
        ],
        [called("f", A1, "call_x")],
    ),
    Case(
        "legacy function_call after tool_calls",
        [call(0, "call_x", "f", A1), chunk({"function_call": {"name": "f", "arguments": A1}}), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "custom",
        [calls(custom(0, "call_x", "grep", "")), calls(custom(0, text="-rn ")), calls(custom(0, text="x")), DONE_CALLS],
        [typed("grep", "-rn x", "call_x")],
    ),
    Case(
        "custom, whole",
        [calls(custom(0, "call_x", "grep", "-rn x"), finish="tool_calls")],
        [typed("grep", "-rn x", "call_x")],
    ),
    Case(
        "custom input that looks like JSON is not complete",
        [calls(custom(0, "call_x", "grep", A1)), calls(custom(0, text=" and more")), DONE_CALLS],
        [typed("grep", A1 + " and more", "call_x")],
    ),
    Case(
        "what follows a custom call is held to the end",
        [
            calls(custom(0, "call_x", "grep", "-rn")),
            text("Now "),
            calls(frag(1, "call_y", "g", B2)),
            calls(custom(0, text=" x")),
            text("this."),
            DONE_CALLS,
        ],
        [typed("grep", "-rn x", "call_x"), said("Now "), called("g", B2, "call_y"), said("this.")],
    ),
    Case(
        "custom input never becomes {}",
        [calls(custom(0, "call_x", "noop", "")), DONE_CALLS],
        [typed("noop", "", "call_x")],
    ),
    Case(
        "custom input of white space is input",
        [calls(custom(0, "call_x", "grep", " ")), DONE_CALLS],
        [typed("grep", " ", "call_x")],
    ),
    limited(
        "custom input of white space, cut by the limit",
        [calls(custom(0, "call_x", "grep", " ")), end("length")],
        [cut(typed("grep", " ", "call_x"))],
    ),
    Case(
        "custom input {} is input",
        [calls(custom(0, "call_x", "echo", "{}")), calls(custom(0, text="{}")), DONE_CALLS],
        [typed("echo", "{}{}", "call_x")],
    ),
    Case(
        "custom id is made",
        [calls(custom(0, name="grep", text="x")), DONE_CALLS],
        [typed("grep", "x")],
    ),
    limited(
        "custom, cut by the limit",
        [calls(custom(0, "call_x", "grep", "-rn")), text("held"), end("length")],
        [cut(typed("grep", "-rn", "call_x")), cut(said("held"))],
    ),
    Case(
        "a signature on a call comes back with it",
        [
            calls({**frag(0, "call_x", "f", A1), "extra_content": {"google": {"thought_signature": "sig-of-ours"}}}),
            DONE_CALLS,
        ],
        [called("f", A1, "call_x")],
        keeps=("sig-of-ours",),
    ),
]

ILL_TYPED = [
    Case("tool_calls null", [chunk({"tool_calls": None, "content": "Hi"}), end()], [said("Hi")]),
    Case("tool_calls an empty list", [chunk({"tool_calls": [], "content": "Hi"}), end()], [said("Hi")]),
    Case("tool_calls a string", [chunk({"tool_calls": "f", "content": "Hi"}), end()], [said("Hi")]),
    Case("tool_calls a number", [chunk({"tool_calls": 3, "content": "Hi"}), end()], [said("Hi")]),
    Case(
        "tool_calls of nothing usable",
        [chunk({"tool_calls": [None, "f", 5, []], "content": "Hi"}), end()],
        [said("Hi")],
    ),
    Case(
        "a usable entry beside unusable ones",
        [chunk({"tool_calls": [None, frag(0, "call_x", "f", A1), "f"]}), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "function null in a later fragment",
        [call(0, "call_x", "f", A1), calls({"index": 0, "function": None}), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "function a string in a later fragment",
        [call(0, "call_x", "f", A1), calls({"index": 0, "function": "f"}), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "an index as text",
        [call("0", "call_x", "f", '{"a":'), call("0", args="1}"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "an index as a fraction",
        [call(0.0, "call_x", "f", '{"a":'), call(0.0, args="1}"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "an index as a truth value",
        [call(False, "call_x", "f", '{"a":'), call(False, args="1}"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "an index of null",
        [call(None, "call_x", "f", '{"a":'), call(None, args="1}"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "a negative index",
        [call(-1, "call_x", "f", '{"a":'), call(-1, args="1}"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "arguments a list",
        [call(0, "call_x", "f", [1, {"b": 2}]), DONE_CALLS],
        [called("f", [1, {"b": 2}], "call_x")],
    ),
    Case("type null", [calls(frag(0, "call_x", "f", A1, type=None)), DONE_CALLS], [called("f", A1, "call_x")]),
    Case("type unknown", [calls(frag(0, "call_x", "f", A1, type="tool")), DONE_CALLS], [called("f", A1, "call_x")]),
    Case("function_call a string", [chunk({"function_call": "f", "content": "Hi"}), end()], [said("Hi")]),
    Case(
        "a choice with tool_calls and nothing else",
        [bare([{"delta": {"tool_calls": [frag(0, "call_x", "f", A1)]}}]), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "role beside a call",
        [role(), chunk({"role": "assistant", "content": None, "tool_calls": [frag(0, "call_x", "f", A1)]}), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
]

GROUPS = {
    "names": NAMES,
    "arguments": ARGUMENTS,
    "closed": CLOSED,
    "waiting": WAITING,
    "held": HELD,
    "kinds": KINDS,
    "ill-typed calls": ILL_TYPED,
}
