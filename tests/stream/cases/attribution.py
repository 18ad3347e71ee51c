"""Which call does a fragment of a tool call belong to? One list for each row of the table."""

from .build import Case, call, called, calls, cut, end, failed, frag, role, said, text

A1, B2, C3 = '{"a":1}', '{"b":2}', '{"c":3}'
DONE_CALLS = end("tool_calls")

# id known on that index; or known and no name given; any index -> that call
KNOWN_ID = [
    Case(
        "id and index again",
        [call(0, "call_x", "f", '{"a":'), call(0, "call_x", args="1}"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "id, index and name again on every fragment",
        [call(0, "call_x", "f", ""), call(0, "call_x", "f", '{"a"'), call(0, "call_x", "f", ":1}"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "whole arguments after a head with the same id and name",
        [call(0, "call_x", "f", ""), call(0, "call_x", "f", A1), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "id again without index",
        [call(0, "call_x", "f", '{"a":'), call(id="call_x", args="1}"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "id again on another index without a name",
        [call(0, "call_x", "f", '{"a":'), call(3, "call_x", args="1}"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "id again on an index of another call without a name",
        [
            call(0, "call_x", "f", '{"a":'),
            call(1, "call_y", "g", B2),
            call(1, "call_x", args="1}"),
            DONE_CALLS,
        ],
        [called("f", A1, "call_x"), called("g", B2, "call_y")],
    ),
    Case(
        "ids tell interleaved calls apart without any index",
        [
            call(id="call_x", name="f", args='{"a":'),
            call(id="call_y", name="g", args='{"b":'),
            call(id="call_x", args="1}"),
            call(id="call_y", args="2}"),
            DONE_CALLS,
        ],
        [called("f", A1, "call_x"), called("g", B2, "call_y")],
    ),
    Case(
        "a match on id and index goes before one on id alone",
        [
            call(0, "dup", "f", '{"a":'),
            call(1, "dup", "g", '{"b":'),
            call(1, "dup", args="2}"),
            call(0, "dup", args="1}"),
            DONE_CALLS,
        ],
        [called("f", A1, "dup"), called("g", B2)],
    ),
]

# id known, on another index, name given -> a new call with a made id
KNOWN_ID_ELSEWHERE = [
    Case(
        "one id for two calls",
        [call(0, "same", "f", A1), call(1, "same", "g", B2), DONE_CALLS],
        [called("f", A1, "same"), called("g", B2)],
    ),
    Case(
        "one id for two calls of one name",
        [calls(frag(0, "same", "f", A1), frag(1, "same", "f", B2)), DONE_CALLS],
        [called("f", A1, "same"), called("f", B2)],
    ),
    Case(
        "one id for three calls",
        [call(0, "same", "f", A1), call(1, "same", "g", B2), call(2, "same", "h", C3), DONE_CALLS],
        [called("f", A1, "same"), called("g", B2), called("h", C3)],
    ),
]

# id new; index used by a call without id; name none or related -> it is that call's id …
LATE_ID = [
    Case(
        "the id comes after the name",
        [call(0, name="f"), call(0, "call_x"), call(0, args=A1), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "the id comes with the arguments",
        [call(0, name="f"), call(0, "call_x", args=A1), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "the id comes with the same name",
        [call(0, name="f"), call(0, "call_x", "f", A1), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "the id comes with a longer form of the name",
        [call(0, name="get"), call(0, "call_x", "get_time", A1), DONE_CALLS],
        [called("get_time", A1, "call_x")],
    ),
    Case(
        "id and name come after the first arguments",
        [call(0, args='{"a":'), call(0, "call_x", "f", "1}"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "id and name come after the whole arguments",
        [call(0, args=A1), call(0, "call_x", "f"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "id after the whole arguments, name after the id",
        [call(0, args=A1), call(0, "call_x"), call(0, name="f"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    # … after the announcement an alias only
    Case(
        "an id after the announcement is an alias",
        [
            call(0, name="f", args='{"a":'),
            call(0, "late-1", args="1,"),
            call(id="late-1", args='"b":2}'),
            DONE_CALLS,
        ],
        [called("f", '{"a":1,"b":2}')],
    ),
    Case(
        "an id after the whole call is an alias",
        [call(0, name="f", args=A1), call(0, "late-1"), DONE_CALLS],
        [called("f", A1)],
    ),
    # … but arguments complete, and the name again or nameless arguments: a new call
    Case(
        "new id and the name again after complete arguments",
        [call(0, name="f", args=A1), call(0, "call_y", "f", B2), DONE_CALLS],
        [called("f", A1), called("f", B2, "call_y")],
    ),
    Case(
        "new id and nameless arguments after complete ones",
        [call(0, name="f", args=A1), call(0, "call_y", args=B2), call(0, "call_y", "g"), DONE_CALLS],
        [called("f", A1), called("g", B2, "call_y")],
    ),
    Case(
        "new id and another name: not related",
        [call(0, name="f"), call(0, "call_y", "other", B2), DONE_CALLS],
        [called("f", "{}"), called("other", B2, "call_y")],
    ),
]

# id new, otherwise -> a new call, also on a used index
NEW_ID = [
    Case(
        "each index its call",
        [call(0, "call_x", "f", A1), call(1, "call_y", "g", B2), DONE_CALLS],
        [called("f", A1, "call_x"), called("g", B2, "call_y")],
    ),
    Case(
        "all calls on index 0",
        [call(0, "call_x", "f", A1), call(0, "call_y", "f", B2), call(0, "call_z", "f", C3), DONE_CALLS],
        [called("f", A1, "call_x"), called("f", B2, "call_y"), called("f", C3, "call_z")],
    ),
    Case(
        "all calls on index 0 of one chunk",
        [calls(frag(0, "call_x", "f", A1), frag(0, "call_y", "g", B2)), DONE_CALLS],
        [called("f", A1, "call_x"), called("g", B2, "call_y")],
    ),
    Case(
        "no index, an id each",
        [call(id="call_x", name="f", args=A1), call(id="call_y", name="g", args=B2), DONE_CALLS],
        [called("f", A1, "call_x"), called("g", B2, "call_y")],
    ),
    Case(
        "no index, an id each, in one chunk",
        [calls(frag(id="call_x", name="f", args=A1), frag(id="call_y", name="f", args=B2), finish="tool_calls")],
        [called("f", A1, "call_x"), called("f", B2, "call_y")],
    ),
    Case(
        "a used index while its call is not complete",
        [
            call(0, "call_x", "f", '{"a":'),
            call(0, "call_y", "g", B2),
            call(0, "call_x", args="1}"),
            DONE_CALLS,
        ],
        [called("f", A1, "call_x"), called("g", B2, "call_y")],
    ),
    Case(
        "a used index, then fragments by index alone",
        [call(0, "call_x", "f", A1), call(0, "call_y", "g", '{"b":'), call(0, args="2}"), DONE_CALLS],
        [called("f", A1, "call_x"), called("g", B2, "call_y")],
    ),
    Case(
        "a used index for the head, a fresh one for the rest",
        [call(0, "call_x", "f", A1), call(0, "call_y", "g", '{"b":'), call(1, args="2}"), DONE_CALLS],
        [called("f", A1, "call_x"), called("g", B2, "call_y")],
    ),
    Case(
        "an id and arguments, the name later",
        [
            call(0, "call_x", args='{"a":'),
            call(1, "call_y", args=B2),
            call(1, name="g"),
            call(0, name="f", args="1}"),
            DONE_CALLS,
        ],
        [called("f", A1, "call_x"), called("g", B2, "call_y")],
    ),
    Case(
        "an id that looks like a number is kept",
        [call(0, "4711", "f", A1), DONE_CALLS],
        [called("f", A1, "4711")],
    ),
    Case(
        "an id with dots and colons is kept",
        [call(0, "functions.look_up:0", "look_up", A1), DONE_CALLS],
        [called("look_up", A1, "functions.look_up:0")],
    ),
    Case(
        "indexes that begin at 1",
        [text("Wait."), call(1, "call_x", "f", ""), call(1, args=A1), DONE_CALLS],
        [said("Wait."), called("f", A1, "call_x")],
    ),
]

# no id, index used, name equal to the call's, or it has none, or a longer form of it
NAME_AGAIN = [
    Case(
        "the name again with the arguments",
        [call(0, "call_x", "f", ""), call(0, name="f", args=A1), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "the name again while arguments are incomplete",
        [call(0, "call_x", "f", '{"a":'), call(0, name="f", args="1}"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "the first name after the id",
        [call(0, "call_x"), call(0, name="f"), call(0, args=A1), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "the first name after complete arguments",
        [call(0, "call_x", args=A1), call(0, name="f"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "a longer form before the announcement",
        [call(0, "call_x", "get"), call(0, name="get_time", args=A1), DONE_CALLS],
        [called("get_time", A1, "call_x")],
    ),
    Case(
        "a longer form after the announcement is ignored",
        [call(0, "call_x", "get", '{"a":'), call(0, name="get_time", args="1}"), DONE_CALLS],
        [called("get", A1, "call_x")],
        warned=True,
    ),
    Case(
        "the name again after complete arguments is a new call",
        [call(0, name="f", args=A1), call(0, name="f", args=B2), DONE_CALLS],
        [called("f", A1), called("f", B2)],
    ),
    Case(
        "the name again after complete arguments, with empty ids",
        [call(0, "", "f", A1), call(0, "", "f", B2), DONE_CALLS],
        [called("f", A1), called("f", B2)],
    ),
    Case(
        "the name again after complete arguments of a call with an id",
        [call(0, "call_x", "f", A1), call(0, name="f", args=B2), DONE_CALLS],
        [called("f", A1, "call_x"), called("f", B2)],
    ),
    Case(
        "the same call twice, word for word, is two calls",
        [call(0, name="f", args=A1), call(0, name="f", args=A1), DONE_CALLS],
        [called("f", A1), called("f", A1)],
    ),
    Case(
        "arguments in pieces, then the name again",
        [
            call(0, name="f", args='{"a":'),
            call(0, args="1}"),
            call(0, name="f", args='{"b":'),
            call(0, args="2}"),
            DONE_CALLS,
        ],
        [called("f", A1), called("f", B2)],
    ),
]

# no id, index used, another name
OTHER_NAME = [
    Case(
        "another name after complete arguments is a new call",
        [call(0, name="f", args=A1), call(0, name="g", args=B2), DONE_CALLS],
        [called("f", A1), called("g", B2)],
    ),
    Case(
        "another name before the announcement is a piece",
        [call(0, "call_x", "get_"), call(0, name="weather", args=A1), DONE_CALLS],
        [called("get_weather", A1, "call_x")],
    ),
    Case(
        "another name after the announcement is ignored",
        [call(0, "call_x", "f", '{"a":'), call(0, name="g", args="1}"), DONE_CALLS],
        [called("f", A1, "call_x")],
        warned=True,
    ),
]

# no id, index used, no name -> continue
INDEX_ALONE = [
    Case(
        "fragments by index",
        [call(0, "call_x", "f", ""), call(0, args='{"a"'), call(0, args=":"), call(0, args="1}"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "interleaved by index",
        [
            calls(frag(0, "call_x", "f", ""), frag(1, "call_y", "g", "")),
            calls(frag(1, args='{"b":'), frag(0, args='{"a":')),
            call(1, args="2}"),
            call(0, args="1}"),
            DONE_CALLS,
        ],
        [called("f", A1, "call_x"), called("g", B2, "call_y")],
    ),
    Case(
        "an index goes before the latest call",
        [call(0, "call_x", "f", ""), call(1, "call_y", "g", ""), call(0, args=A1), call(1, args=B2), DONE_CALLS],
        [called("f", A1, "call_x"), called("g", B2, "call_y")],
    ),
    Case(
        "empty strings for id and name are not given",
        [call(0, "call_x", "f", '{"a":'), call(0, "", "", "1"), call(0, "", "", "}"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "nulls for id, name and type are not given",
        [
            call(0, "call_x", "f", None),
            calls(frag(0, None, None, '{"a":', type=None)),
            calls(frag(0, None, None, "1}", type=None)),
            DONE_CALLS,
        ],
        [called("f", A1, "call_x")],
    ),
    Case(
        "several fragments of one index in one chunk",
        [calls(frag(0, "call_x", "f", "{"), frag(0, args='"a"'), frag(0, args=":1}")), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
]

# no id, index never opened, name given -> a new call
NEW_INDEX = [
    Case(
        "no ids at all",
        [call(0, name="f", args=A1), call(1, name="g", args=B2), DONE_CALLS],
        [called("f", A1), called("g", B2)],
    ),
    Case(
        "no ids, one name",
        [calls(frag(0, name="f", args=A1), frag(1, name="f", args=B2)), DONE_CALLS],
        [called("f", A1), called("f", B2)],
    ),
    Case(
        "no ids, a new index while the first is incomplete",
        [call(0, name="f", args='{"a":'), call(1, name="g", args=B2), call(0, args="1}"), DONE_CALLS],
        [called("f", A1), called("g", B2)],
    ),
]

# no id, index never opened or missing, no name
NOTHING_BUT_ARGUMENTS = [
    Case(
        "white space in the middle of a string is content",
        [call(id="call_x", name="f", args='{"a":"x'), call(args=" "), call(args='y"}'), DONE_CALLS],
        [called("f", '{"a":"x y"}', "call_x")],
    ),
    Case(
        "white space between the parts of an object is nothing",
        [call(id="call_x", name="f", args='{"a":'), call(args=" "), call(args="1}"), DONE_CALLS],
        [called("f", '{"a":1}', "call_x")],
    ),
    Case(
        "no index: the latest call goes on",
        [call(id="call_x", name="f", args='{"a":'), call(args="1}"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "a strange index: the latest call goes on",
        [call(0, "call_x", "f", '{"a":'), call(7, args="1}"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "latest is the call touched last",
        [call(0, "call_x", "f", ""), call(1, "call_y", "g", ""), call(0, args='{"a":'), call(args="1}"), DONE_CALLS],
        [called("f", A1, "call_x"), called("g", "{}", "call_y")],
    ),
    Case(
        "empty and white-space arguments on a strange index are nothing",
        [call(0, "call_x", "f", A1), call(3, args=""), call(4, args=" \n"), call(args=""), DONE_CALLS],
        [called("f", {"a": 1}, "call_x")],
    ),
    Case(
        "empty arguments before any call are nothing",
        [call(0, args=""), call(args="  "), text("No call."), end()],
        [said("No call.")],
    ),
    Case(
        "arguments before any call are a call, named later",
        [call(args=A1), call(name="f"), DONE_CALLS],
        [called("f", A1)],
    ),
    Case(
        "the latest has neither id nor name: another call",
        [
            calls(frag(0, args=A1), frag(1, args=B2)),
            call(0, "call_x", "f"),
            call(1, "call_y", "g"),
            DONE_CALLS,
        ],
        [called("f", A1, "call_x"), called("g", B2, "call_y")],
    ),
    Case(
        "the latest has neither, though incomplete: another call",
        [
            call(0, args='{"a":'),
            call(1, args='{"b":'),
            call(0, "call_x", "f", "1}"),
            call(1, "call_y", "g", "2}"),
            DONE_CALLS,
        ],
        [called("f", A1, "call_x"), called("g", B2, "call_y")],
    ),
    Case(
        "the arguments of the latest are complete: another call",
        [call(id="call_x", name="f", args=A1), call(args=B2), call(name="g"), DONE_CALLS],
        [called("f", A1, "call_x"), called("g", B2)],
    ),
    Case(
        "arguments that came before the name are not yet complete",
        [call(0, "call_x", args='{"a":'), call(0, args="1}"), call(0, name="f"), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
]

# no id, index missing, name given
NAME_ALONE = [
    Case(
        "a name without anything is a call",
        [call(name="f", args=A1), DONE_CALLS],
        [called("f", A1)],
    ),
    Case(
        "the latest name is final: a new call",
        [call(name="f", args=A1), call(name="g", args=B2), call(name="g", args=C3), DONE_CALLS],
        [called("f", A1), called("g", B2), called("g", C3)],
    ),
    Case(
        "two calls with nothing but {} as arguments",
        [call(name="f", args="{}"), call(name="g", args="{}"), DONE_CALLS],
        [called("f", "{}"), called("g", "{}")],
    ),
    Case(
        "the latest name is not final: a piece of it",
        [call(name="get_"), call(name="time"), call(args=A1), DONE_CALLS],
        [called("get_time", A1)],
    ),
    Case(
        "the latest has no name: its name",
        [call(id="call_x"), call(name="f"), call(args=A1), DONE_CALLS],
        [called("f", A1, "call_x")],
    ),
    Case(
        "two whole calls of one chunk without index and id",
        [calls(frag(name="f", args=A1), frag(name="f", args=B2), finish="stop")],
        [called("f", A1), called("f", B2)],
    ),
]

# "tool call 0" counts calls in order of appearance; a nameless call at a success finish fails the response
NAMELESS = [
    failed(
        "never a name, finish tool_calls",
        [role(), call(0, "call_x", args=A1), DONE_CALLS],
        [],
        "server_error",
        says=("tool call 0", "name"),
    ),
    failed(
        "never a name, finish stop, after text",
        [text("Hm."), call(0, "call_x", args=A1), end("stop")],
        [cut(said("Hm."))],
        "server_error",
        says=("tool call 0", "name"),
    ),
    failed(
        "the second never gets a name",
        [call(0, "call_x", "f", A1), call(1, "call_y", args=B2), DONE_CALLS],
        [called("f", A1, "call_x", status="incomplete")],
        "server_error",
        says=("tool call 1", "name"),
    ),
    failed(
        "never a name, no finish",
        [text("Hm."), call(0, "call_x", args=A1)],
        [cut(said("Hm."))],
        "server_error",
        says=("tool call 0",),
    ),
    failed(
        "never a name, the source raises",
        [call(0, "call_x", args=A1)],
        [],
        "server_error",
        says=("tool call 0", "line went dead"),
        fail=ConnectionError("the line went dead"),
    ),
    Case(
        "never a name, finish length: left out",
        [text("Hm."), call(0, "call_x", args='{"a"'), end("length")],
        [cut(said("Hm."))],
        terminal="incomplete",
        reason="max_output_tokens",
    ),
]

GROUPS = {
    "known id": KNOWN_ID,
    "known id elsewhere": KNOWN_ID_ELSEWHERE,
    "late id": LATE_ID,
    "new id": NEW_ID,
    "name again": NAME_AGAIN,
    "other name": OTHER_NAME,
    "index alone": INDEX_ALONE,
    "new index": NEW_INDEX,
    "nothing but arguments": NOTHING_BUT_ARGUMENTS,
    "name alone": NAME_ALONE,
    "nameless": NAMELESS,
}
