"""Good answers of a server, and answers with one thing broken, which one rule reports."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from antiphon_conformance.exchange import Exchange, Piece
from antiphon_conformance.read import listed

from .chunks import ADD, MODEL, TEXT, WEATHER, Chunks, Json, chunks_for, event, whole_of

SSE = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}
DONE = b"data: [DONE]\n\n"

ASKED: Json = {"model": MODEL, "messages": [{"role": "user", "content": TEXT}], "stream": True}
USAGE: Json = {**ASKED, "stream_options": {"include_usage": True}}
CALLED: Json = {
    **ASKED,
    "messages": [{"role": "user", "content": "the weather here and there, at once"}],
    "tools": [{"type": "function", "function": one} for one in (WEATHER, ADD)],
}
NAMED: Json = {**CALLED, "tool_choice": {"type": "function", "function": {"name": "add"}}}
LOGPROBS: Json = {**ASKED, "logprobs": True, "top_logprobs": 1}
TWO: Json = {**USAGE, "n": 2}
FORMED: Json = {
    **ASKED,
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"required": ["city"]}}},
}


def body_of(chunks: Chunks) -> bytes:
    """Return the body in which chunks come."""
    return b"".join(map(event, chunks)) + DONE


def good(asked: Json = ASKED, number: int = 1) -> Exchange:
    """Return a good answer to a request."""
    return sent(asked, body_of(chunks_for(asked, number)))


def sent(asked: Json, body: bytes, **more: Any) -> Exchange:
    """Return an answer with this body."""
    whole = Exchange("chat", asked, 200, SSE, (Piece(0.1, body),), seconds=0.2)
    return replace(whole, **more)


def refused(status: int, body: Any, refusal: Any = "request", **more: Any) -> Exchange:
    """Return the answer to a request that is refused."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return replace(Exchange("chat", ASKED, status, JSON, (Piece(0.1, raw),), refusal=refusal), **more)


def error(**more: Any) -> Json:
    """Return an error of OpenAI's shape."""
    return {"error": {"message": "no", "type": "invalid_request_error", "param": None, "code": None, **more}}


@dataclass(frozen=True)
class Mutant:
    """One mutant: the rule that reports it, what is broken, and the answer. `also` are rules that rightly report it
    too."""

    code: str
    name: str
    exchange: Exchange
    also: tuple[str, ...] = ()


MUTANTS: list[Mutant] = []


def mutant(code: str, name: str, exchange: Exchange, *also: str) -> None:
    """Add one to the table."""
    MUTANTS.append(Mutant(code, name, exchange, also))


def broken(code: str, name: str, asked: Json, change: Callable[[Chunks], Any], *also: str) -> None:
    """Add one whose chunks are changed: in place, or to what `change` returns."""
    chunks = deepcopy(chunks_for(asked, 1))
    changed = change(chunks)
    mutant(code, name, sent(asked, body_of(listed(changed) or chunks)), *also)


def choice(chunk: Json) -> Json:
    """Return the first choice of a chunk."""
    found: Json = chunk["choices"][0]
    return found


def delta(chunk: Json) -> Json:
    """Return the delta of the first choice."""
    found: Json = choice(chunk)["delta"]
    return found


def call(chunk: Json) -> Json:
    """Return the first fragment of a call."""
    found: Json = delta(chunk)["tool_calls"][0]
    return found


def every(change: Callable[[Json], Any]) -> Callable[[Chunks], None]:
    """Return the change of every chunk."""

    def changed(chunks: Chunks) -> None:
        for chunk in chunks:
            change(chunk)

    return changed


def calls_in(chunks: Chunks) -> list[Json]:
    """Return the fragments of calls."""
    return [one for chunk in chunks for one in delta(chunk).get("tool_calls", ())]


def with_content(value: Any) -> Callable[[Chunks], None]:
    """Return the change that makes the first text this one."""

    def change(chunks: Chunks) -> None:
        delta(chunks[1])["content"] = value

    return change


def cumulative(chunks: Chunks) -> None:
    """Make each delta the whole text so far."""
    so_far = ""
    for chunk in chunks:
        if delta(chunk).get("content"):
            so_far += delta(chunk)["content"]
            delta(chunk)["content"] = so_far


def put(where: Callable[[Chunks], Json], **values: Any) -> Callable[[Chunks], None]:
    """Return the change that sets keys of what `where` finds."""
    return lambda chunks: where(chunks).update(values)


def drop(where: Callable[[Chunks], Json], key: str) -> Callable[[Chunks], None]:
    """Return the change that removes a key of what `where` finds."""

    def change(chunks: Chunks) -> None:
        del where(chunks)[key]

    return change


# --- the answer as a whole -------------------------------------------------------------------------------------------

mutant("CHT001", "an error", refused(500, error(), refusal=""))
mutant("CHT001", "no connection", Exchange("chat", ASKED, failure="connect", message="refused"))
mutant("CHT001", "a redirection", sent(ASKED, b"", status=307, headers={"location": "http://there"}))
mutant(
    "CHT001",
    "a web page",
    sent(ASKED, b"<html><title>Hello</title></html>", headers={"content-type": "text/html"}),
    "CHT002",
)
mutant("CHT001", "an empty body", sent(ASKED, b""))
mutant("CHT002", "JSON as content type", replace(good(), headers=JSON))
mutant("CHT002", "no content type", replace(good(), headers={}))
mutant(
    "CHT003", "the connection breaks", sent(ASKED, event(chunks_for(ASKED, 1)[0]), failure="broken", message="reset")
)
mutant("CHT003", "it is endless", replace(good(), failure="too_long", message="8 MB"))
mutant("CHT004", "a line is cut", sent(ASKED, good().body.replace(b'{"content"', b'{,"content"', 1)))
mutant("CHT004", "a payload is a number", sent(ASKED, b"data: 5\n\n" + good().body))
mutant("CHT004", "no UTF-8", sent(ASKED, good().body.replace(b'{"content": "', b'{"content": "\xe9', 1)))
mutant("CHT005", "an event name", sent(ASKED, good().body.replace(b"data: {", b"event: message.delta\ndata: {", 1)))
mutant("CHT005", "a line without a field", sent(ASKED, b"hello\n" + good().body))
mutant("CHT005", "no blank line at the end", sent(ASKED, good().body.rstrip()))
mutant("CHT006", "no [DONE]", sent(ASKED, good().body.removesuffix(DONE)))
mutant("CHT006", "a chunk after [DONE]", sent(ASKED, DONE + good().body.removesuffix(DONE)))
mutant(
    "CHT007", "an error in the middle", sent(ASKED, event(chunks_for(ASKED, 1)[0]) + event(error(type="server_error")))
)

# --- every chunk -----------------------------------------------------------------------------------------------------

broken("CHT010", "another object", ASKED, every(lambda chunk: chunk.update(object="chat.completion")))
broken("CHT010", "no object on one", ASKED, lambda chunks: chunks[2].pop("object") and None)
broken("CHT011", "the id changes", ASKED, put(lambda chunks: chunks[-1], id="chatcmpl-9"))
broken("CHT011", "no id", ASKED, every(lambda chunk: chunk.update(id="")))
broken("CHT012", "created moves", ASKED, put(lambda chunks: chunks[-1], created=1767225601))
broken("CHT012", "created is a text", ASKED, every(lambda chunk: chunk.update(created="now")))
broken("CHT013", "the model changes", ASKED, put(lambda chunks: chunks[2], model="other"))
broken("CHT013", "no model", ASKED, every(lambda chunk: chunk.pop("model")))
broken("CHT014", "empty choices", ASKED, lambda chunks: [{**chunks[0], "choices": []}, *chunks])
broken("CHT014", "choices null", ASKED, lambda chunks: [*chunks, {**chunks[0], "choices": None}])
broken("CHT015", "no index", ASKED, every(lambda chunk: choice(chunk).pop("index")))
broken("CHT015", "a choice that was not asked for", ASKED, lambda _: chunks_for({**ASKED, "n": 2}, 1))
broken(
    "CHT015",
    "one choice twice in a chunk",
    ASKED,
    lambda chunks: chunks[1]["choices"].append(deepcopy(choice(chunks[1]))),
)
broken("CHT016", "no delta", ASKED, lambda chunks: choice(chunks[-1]).pop("delta") and None)
broken("CHT016", "delta null", ASKED, lambda chunks: choice(chunks[-1]).update(delta=None))
broken("CHT017", "timings", ASKED, put(lambda chunks: chunks[-1], timings={}))
broken("CHT017", "reasoning_content", ASKED, lambda chunks: delta(chunks[0]).update(reasoning_content="hm"))
broken(
    "CHT018",
    "no finish_reason on open chunks",
    ASKED,
    lambda chunks: [choice(chunk).pop("finish_reason") for chunk in chunks[:-1]] and None,
)

# --- choices ---------------------------------------------------------------------------------------------------------

broken("CHT020", "no role", ASKED, lambda chunks: chunks[1:])
broken("CHT020", "another role", ASKED, lambda chunks: delta(chunks[0]).update(role="model"))
broken("CHT021", "the role on every chunk", ASKED, every(lambda chunk: delta(chunk).update(role="assistant")))
broken("CHT022", "content null beside the role", ASKED, lambda chunks: delta(chunks[0]).update(content=None))
broken("CHT023", "content is a list", ASKED, with_content([{"type": "text", "text": "The"}]))
broken("CHT023", "content is a number", ASKED, with_content(5))
broken("CHT024", "the whole text each time", ASKED, cumulative)
broken("CHT025", "thoughts in the content", ASKED, with_content("<think>hm</think>"))
broken("CHT026", "a call in the content", {**CALLED, "tool_choice": "none"}, with_content('<tool_call>{"name":"add"}'))
broken("CHT040", "no finish_reason", ASKED, lambda chunks: choice(chunks[-1]).update(finish_reason=None))
broken("CHT040", "two of them", ASKED, lambda chunks: [*chunks, chunks[-1]])
mutant("CHT040", "the stream is cut", sent(USAGE, b"".join(map(event, chunks_for(USAGE, 1)[:3]))))
broken("CHT041", "another word", ASKED, lambda chunks: choice(chunks[-1]).update(finish_reason="eos"))
broken("CHT042", "stop with calls", CALLED, lambda chunks: choice(chunks[-1]).update(finish_reason="stop"))
broken("CHT042", "tool_calls without", ASKED, lambda chunks: choice(chunks[-1]).update(finish_reason="tool_calls"))
broken("CHT043", "text after the finish", ASKED, lambda chunks: [*chunks[:-2], chunks[-1], chunks[-2]])
broken("CHT044", "text beside the finish", ASKED, lambda chunks: delta(chunks[-1]).update(content="!"))

# --- calls -----------------------------------------------------------------------------------------------------------

broken("CHT030", "no index", CALLED, lambda chunks: [one.pop("index") for one in calls_in(chunks)] and None)
broken("CHT030", "index null", CALLED, lambda chunks: [one.update(index=None) for one in calls_in(chunks)] and None)
broken(
    "CHT031", "from 1", CALLED, lambda chunks: [one.update(index=one["index"] + 1) for one in calls_in(chunks)] and None
)
broken("CHT032", "no id", CALLED, lambda chunks: call(chunks[1]).pop("id") and None)
broken("CHT032", "no type", CALLED, lambda chunks: call(chunks[1]).pop("type") and None)
broken("CHT032", "no name", CALLED, lambda chunks: call(chunks[1])["function"].pop("name") and None)
broken("CHT033", "the id again", CALLED, lambda chunks: call(chunks[2]).update(id="call_1_0"))
broken("CHT033", "the name again", CALLED, lambda chunks: call(chunks[2])["function"].update(name="get_weather"))
broken(
    "CHT034", "one id", CALLED, lambda chunks: [one.update(id="x") for one in calls_in(chunks) if "id" in one] and None
)
broken("CHT035", "null", CALLED, lambda chunks: call(chunks[1])["function"].update(arguments=None))


def whole_arguments(chunks: Chunks) -> Chunks:
    """Make the arguments objects, whole in the first fragment of each call."""
    kept = [chunk for chunk in chunks if not delta(chunk).get("tool_calls") or "id" in call(chunk)]
    for one in calls_in(kept):
        one["function"]["arguments"] = {"city": "Oslo"}
    return kept


broken("CHT035", "an object", CALLED, whole_arguments, "CHT037")
broken(
    "CHT036",
    "interleaved",
    CALLED,
    lambda chunks: [*chunks[:2], *sorted(chunks[2:-1], key=lambda chunk: "id" not in call(chunk)), chunks[-1]],
)
broken(
    "CHT036",
    "two fragments in a chunk",
    CALLED,
    lambda chunks: delta(chunks[2])["tool_calls"].append(delta(chunks.pop(3))["tool_calls"][0]),
)
broken("CHT037", "cut arguments", CALLED, lambda chunks: [*chunks[:-2], chunks[-1]])
broken(
    "CHT038",
    "the older way beside it",
    CALLED,
    lambda chunks: delta(chunks[1]).update(function_call={"name": "get_weather"}),
)

# --- errors ----------------------------------------------------------------------------------------------------------

mutant("CHT050", "no JSON", refused(400, b"Internal Server Error"))
mutant("CHT050", "detail", refused(422, {"detail": "no"}))
mutant("CHT050", "a number as code", refused(400, error(code=400)))
mutant("CHT050", "text as content type", refused(400, error(), headers={"content-type": "text/plain"}))
mutant(
    "CHT050", "no type within a stream", sent(ASKED, event(chunks_for(ASKED, 1)[0]) + event(error(type=None))), "CHT007"
)
mutant("CHT051", "a model that does not exist is served", replace(good(), refusal="model"))
mutant("CHT051", "500 for what is no request", refused(500, error()))
mutant(
    "CHT051",
    "no answer to what is no request",
    Exchange("chat", ASKED, failure="silent", message="120 s", refusal="request"),
)
mutant("CHT052", "another code", refused(400, error(code="too_long"), refusal="length"))

# --- what was asked for ----------------------------------------------------------------------------------------------

broken("CHT060", "no usage", USAGE, lambda chunks: chunks[:-1])
broken(
    "CHT061", "beside choices", USAGE, lambda chunks: [*chunks[:-2], {**chunks[-1], "choices": chunks[-2]["choices"]}]
)
broken("CHT061", "not last", USAGE, lambda chunks: [*chunks[:-2], chunks[-1], chunks[-2]])
broken("CHT062", "one for each choice", TWO, lambda chunks: [*chunks, chunks[-1]])
broken("CHT063", "a wrong sum", USAGE, lambda chunks: chunks[-1]["usage"].update(total_tokens=1))
broken("CHT063", "a text", USAGE, lambda chunks: chunks[0].update(usage="none"))
broken(
    "CHT063",
    "more reasoned than came out",
    USAGE,
    lambda chunks: chunks[-1]["usage"].update(completion_tokens_details={"reasoning_tokens": 99}),
)
broken("CHT063", "null", USAGE, lambda chunks: chunks[-1]["usage"].update(completion_tokens=None))
broken("CHT064", "usage unasked", ASKED, lambda chunks: [*chunks, deepcopy(chunks_for(USAGE, 1))[-1]])
broken("CHT070", "none", LOGPROBS, every(lambda chunk: choice(chunk).update(logprobs=None)))
broken("CHT070", "no bytes", LOGPROBS, lambda chunks: choice(chunks[1])["logprobs"]["content"][0].pop("bytes") and None)
broken(
    "CHT070",
    "too many",
    LOGPROBS,
    lambda chunks: choice(chunks[1])["logprobs"]["content"][0]["top_logprobs"].append({}),
)
broken(
    "CHT070",
    "not asked for",
    ASKED,
    lambda chunks: deepcopy(
        [{**chunk, "choices": other["choices"]} for chunk, other in zip(chunks, chunks_for(LOGPROBS, 1), strict=True)]
    ),
)
broken(
    "CHT071",
    "one for two",
    TWO,
    lambda chunks: [chunk for chunk in chunks if not chunk["choices"] or choice(chunk)["index"] == 0],
)
mutant("CHT072", "the stop word", good({**ASKED, "stop": ["wide"]}))
mutant("CHT073", "more than allowed", sent({**USAGE, "max_tokens": 2}, good(USAGE).body))
mutant("CHT073", "more than allowed, not counted", sent({**ASKED, "max_completion_tokens": 2}, good().body))
mutant("CHT074", "none, and a call", sent({**CALLED, "tool_choice": "none"}, good(CALLED).body))
mutant("CHT074", "required, and no call", sent({**CALLED, "tool_choice": "required"}, good().body))
mutant("CHT074", "another one than named", sent(NAMED, good(CALLED).body))
mutant("CHT074", "a call without tools", sent(ASKED, good(CALLED).body))
mutant("CHT075", "no JSON", sent(FORMED, good().body))
mutant(
    "CHT075", "a key is missing", sent(FORMED, good(FORMED).body.replace(b"city", b"town").replace(b'\\"ci', b'\\"to'))
)
mutant(
    "CHT076",
    "another text",
    replace(good(), twin=sent({**ASKED, "stream": False}, json.dumps(whole_of(chunks_for(FORMED, 2))).encode())),
)
mutant("CHT076", "no completion", replace(good(), twin=sent({**ASKED, "stream": False}, b"<html>")))
mutant("CHT077", "one id", replace(good(), beside=good()))
mutant("CHT077", "the other is not served", replace(good(), beside=refused(429, error(), refusal="")))
mutant(
    "CHT078",
    "a minute of silence",
    replace(good(), pieces=(Piece(0.1, good().body), Piece(61.0, b": ping\n\n")), seconds=61.1),
)

# --- Responses servers -----------------------------------------------------------------------------------------------

RESPONSES: Mapping[str, Any] = {"model": MODEL, "input": TEXT, "stream": True}


def events(*types: str, named: bool = True) -> bytes:
    """Return a body with events of these types."""
    said = [(f"event: {kind}\n" if named else "") + f"data: {json.dumps({'type': kind})}\n\n" for kind in types]
    return "".join(said).encode()


def native(body: bytes) -> Exchange:
    """Return the answer of a Responses server."""
    return Exchange("responses", RESPONSES, 200, SSE, (Piece(0.1, body),))


NATIVE = native(events("response.created", "response.completed"))
_REFUSED = {"api": "responses", "request": RESPONSES}

mutant("WIR001", "JSON as content type", replace(NATIVE, headers=JSON))
mutant("WIR001", "no connection", Exchange("responses", RESPONSES, failure="connect", message="refused"))
mutant("WIR001", "the connection breaks", replace(NATIVE, failure="broken", message="reset"))
mutant("WIR001", "an error", refused(500, error(), refusal="", **_REFUSED))
mutant("WIR002", "no names", native(events("response.created", named=False)))
mutant(
    "WIR002", "another name", native(events("response.created").replace(b"event: response.created", b"event: message"))
)
mutant("WIR002", "no UTF-8", native(NATIVE.body.replace(b'created"}', b'created", "x": "\xe9"}')))
mutant("WIR002", "[DONE]", native(NATIVE.body + DONE))
mutant("WIR002", "no JSON", native(b"event: x\ndata: {\n\n"))
mutant("WIR002", "no blank line at the end", native(NATIVE.body.rstrip()))
mutant("WIR003", "no JSON", refused(400, b"no", **_REFUSED))
mutant("WIR003", "a number as code", refused(400, error(code=400), **_REFUSED))
mutant("WIR003", "500 for what is no request", refused(500, error(), **_REFUSED))
mutant("WIR003", "a model that does not exist is served", replace(NATIVE, refusal="model"))
LEFT = replace(good(), left=True, pieces=(Piece(0.1, good().body[:300]),), after=good(number=2))
mutant(
    "WIR004", "the next waits for ever", replace(LEFT, after=Exchange("chat", ASKED, failure="silent", message="120 s"))
)
mutant("WIR004", "the next is refused", replace(NATIVE, left=True, after=refused(503, error(), refusal="", **_REFUSED)))

GOOD: dict[str, Exchange] = {
    **{name: good(asked) for name, asked in (("text", ASKED), ("usage", USAGE), ("calls", CALLED), ("named", NAMED))},
    **{name: good(asked) for name, asked in (("logprobs", LOGPROBS), ("two", TWO), ("formed", FORMED))},
    "refused": refused(400, error()),
    "overlong": refused(400, error(code="context_length_exceeded"), refusal="length"),
    "left": LEFT,
    "twin": replace(good(), twin=sent({**ASKED, "stream": False}, json.dumps(whole_of(chunks_for(ASKED, 2))).encode())),
    "beside": replace(good(), beside=good(number=2)),
    "CRLF": sent(ASKED, good().body.replace(b"\n", b"\r\n")),
    "native": NATIVE,
    "native refused": refused(400, error(), **_REFUSED),
}
