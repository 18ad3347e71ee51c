"""Small native streams, each with what one kind of server does otherwise, and what is said in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
USAGE = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7, "input_tokens_details": {"cached_tokens": 1}}


@dataclass(frozen=True, slots=True)
class Native:
    """A stream, and what has to be in it once it is repaired: (type, text or arguments, status) of its items."""

    events: list[Any]
    items: list[tuple[str, str, str | None]]
    ending: str = "completed"
    more: Json = field(default_factory=dict)  # further fields of the final response


def event(type: str, **fields: Any) -> Json:
    return {"type": f"response.{type}" if type != "error" else type, **fields}


def begin(**more: Any) -> list[Json]:
    response = {"id": "resp_1", "object": "response", "status": "in_progress", **more}
    return [event("created", response=response), event("in_progress", response=response)]


def end(*output: Json, name: str = "completed", **more: Any) -> Json:
    response = {"id": "resp_1", "object": "response", "status": name, "output": list(output), "usage": USAGE, **more}
    return event(name, response=response)


def message(text: str, id: str = "msg_1", **more: Any) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": id, "type": "message", "role": "assistant", "status": "completed", "content": content, **more}


def call(arguments: str, id: str = "fc_1", call_id: str = "call_1", **more: Any) -> Json:
    head = {"id": id, "type": "function_call", "call_id": call_id, "name": "f", "status": "completed"}
    return {**head, "arguments": arguments, **more}


def thought(text: str, id: str = "rs_1", **more: Any) -> Json:
    return {"id": id, "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}], **more}


def added(item: Json, **place: Any) -> Json:
    empty = {"content": [], "summary": [], "arguments": "", "input": ""}
    held = {key: empty.get(key, one) for key, one in item.items()}
    return event("output_item.added", item={**held, "status": "in_progress"}, **place)


def done(item: Json, **place: Any) -> Json:
    return event("output_item.done", item=item, **place)


def text(delta: str, **place: Any) -> Json:
    return event("output_text.delta", delta=delta, **place)


def arguments(delta: str, **place: Any) -> Json:
    return event("function_call_arguments.delta", delta=delta, **place)


HELLO, F, THINK = message("Hello"), call('{"a":1}'), thought("Hmm")
SEARCH = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}}

STREAMS: dict[str, Native] = {
    # llama.cpp
    "no indexes, no numbers, no arguments.done, items closed at the end": Native(
        [
            *begin(),
            added(THINK),
            event("reasoning_text.delta", delta="Hmm", item_id="rs_1"),
            added(HELLO),
            text("Hel", item_id="msg_1"),
            text("lo", item_id="msg_1"),
            added(F),
            arguments('{"a"', item_id="fc_1"),
            arguments(":1}", item_id="fc_1"),
            done(THINK),
            done(HELLO),
            done(F),
            end(THINK, HELLO, F),
        ],
        [("reasoning", "Hmm", None), ("message", "Hello", "completed"), ("function_call", '{"a":1}', "completed")],
    ),
    "the head comes twice": Native(
        [*begin(), added(HELLO), text("Hello", item_id="msg_1"), *begin(), done(HELLO), end(HELLO)],
        [("message", "Hello", "completed")],
    ),
    "a bare error in the middle of a call": Native(
        [*begin(), added(F), arguments('{"a"', item_id="fc_1"), {"error": {"code": 500, "message": "broke"}}],
        [("function_call", '{"a"', "incomplete")],
        "failed",
        {"error": {"code": "server_error", "message": "broke (500)"}},
    ),
    # vLLM
    "completed says that it is incomplete": Native(
        [
            *begin(),
            added(HELLO, output_index=0),
            text("Hello", output_index=0),
            done(HELLO, output_index=0),
            event("completed", response={**end(HELLO)["response"], "status": "incomplete"}),
        ],
        [("message", "Hello", "incomplete")],
        "incomplete",
        {"incomplete_details": {"reason": "max_output_tokens"}},
    ),
    # LM Studio
    "a call without deltas, reasoning with a status": Native(
        [
            *begin(),
            added(THINK, output_index=0),
            event("reasoning_text.delta", delta="Hmm", output_index=0),
            done({**THINK, "status": "completed"}, output_index=0),
            added(F, output_index=1),
            event("function_call_arguments.done", arguments='{"a":1}', output_index=1),
            done(F, output_index=1),
            end(THINK, F),
        ],
        [("reasoning", "Hmm", None), ("function_call", '{"a":1}', "completed")],
    ),
    # GitHub Copilot
    "another id in each event": Native(
        [
            *begin(),
            added({**HELLO, "id": "m1"}, output_index=0),
            text("Hel", item_id="m2", output_index=0),
            text("lo", item_id="m3", output_index=0),
            done({**HELLO, "id": "m4"}, output_index=0),
            end({**HELLO, "id": "m5"}, id="resp_2"),
        ],
        [("message", "Hello", "completed")],
    ),
    # OpenRouter
    "a message inside of reasoning, and other ids at the end": Native(
        [
            *begin(),
            added(THINK, output_index=0),
            event("reasoning_text.delta", delta="Hmm", item_id="rs_1", output_index=0),
            added(HELLO, output_index=1),
            text("Hello", item_id="msg_1", output_index=1),
            done(HELLO, output_index=1),
            done(THINK, output_index=0),
            end({**THINK, "id": "rs_9"}, HELLO),
        ],
        [("reasoning", "Hmm", None), ("message", "Hello", "completed")],
    ),
    "an encrypted thought that ends after the message began": Native(
        [
            *begin(),
            added(THINK, output_index=0),
            event("reasoning_text.delta", delta="Hmm", item_id="rs_1", output_index=0),
            added(HELLO, output_index=1),
            text("Hello", item_id="msg_1", output_index=1),
            done({**THINK, "encrypted_content": "gAAA"}, output_index=0),
            done(HELLO, output_index=1),
            end({**THINK, "encrypted_content": "gAAA"}, HELLO),
        ],
        [("reasoning", "Hmm", None), ("message", "Hello", "completed"), ("reasoning", "gAAA", None)],
    ),
    # LiteLLM's bridge
    "a message that goes on while a call opens and closes inside": Native(
        [
            *begin(),
            added(HELLO, output_index=0),
            text("Hel", item_id="msg_1", output_index=0),
            added(F, output_index=1),
            arguments('{"a":1}', item_id="fc_1", output_index=1),
            done(F, output_index=1),
            text("lo", item_id="msg_1", output_index=0),
            done(HELLO, output_index=0),
            end(HELLO, F),
        ],
        [("message", "Hel", "completed"), ("function_call", '{"a":1}', "completed"), ("message", "lo", "completed")],
    ),
    "summaries without an index or a part": Native(
        [
            *begin(),
            added({"id": "rs_1", "type": "reasoning", "summary": []}, output_index=0),
            event("reasoning_summary_text.delta", delta="Hmm", item_id="rs_1", output_index=0),
            event("reasoning_summary_part.done", part={"type": "summary_text", "text": "Hmm"}, output_index=0),
            done({"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hmm"}]}),
            end(),
        ],
        [("reasoning", "Hmm", None)],
    ),
    "calls that mingle": Native(
        [
            *begin(),
            added(F, output_index=0),
            added(call('{"b":2}', "fc_2", "call_2"), output_index=1),
            arguments('{"a"', output_index=0),
            arguments('{"b"', output_index=1),
            arguments(":1}", output_index=0),
            arguments(":2}", output_index=1),
            done(F, output_index=0),
            done(call('{"b":2}', "fc_2", "call_2"), output_index=1),
            end(),
        ],
        [("function_call", '{"a":1}', "completed"), ("function_call", '{"b":2}', "completed")],
    ),
    # codex-relay
    "no in_progress, no parts, calls in one piece": Native(
        [begin()[0], added(HELLO), text("Hello"), done(HELLO), added(F), arguments('{"a":1}'), done(F), end(HELLO, F)],
        [("message", "Hello", "completed"), ("function_call", '{"a":1}', "completed")],
    ),
    # chatgpt-codex
    "the output at the end is empty": Native(
        [*begin(), added(HELLO, output_index=0), text("Hello", output_index=0), done(HELLO, output_index=0), end()],
        [("message", "Hello", "completed")],
    ),
    # xAI
    "a citation with a URL alone": Native(
        [
            *begin(),
            added(HELLO, output_index=0),
            text("Hello", output_index=0),
            event("output_text.annotation.added", output_index=0, annotation={"type": "url_citation", "url": "u"}),
            done(HELLO, output_index=0),
            end(HELLO),
        ],
        [("message", "Hello", "completed")],
    ),
    # Bedrock's OpenAI endpoint
    "the first part is number 1": Native(
        [
            *begin(),
            added(HELLO, output_index=0),
            text("Hello", output_index=0, content_index=1),
            event("output_text.done", text="Hello", output_index=0, content_index=1),
            done(HELLO, output_index=0),
            end(HELLO),
        ],
        [("message", "Hello", "completed")],
    ),
    "nothing but the end": Native(
        [end(HELLO, F)], [("message", "Hello", "completed"), ("function_call", '{"a":1}', "completed")]
    ),
    "items that are only done": Native(
        [*begin(), done(HELLO, output_index=0), done(F, output_index=1), end()],
        [("message", "Hello", "completed"), ("function_call", '{"a":1}', "completed")],
    ),
    "text of an item that was never announced": Native(
        [text("Hello", item_id="msg_1"), end(HELLO)], [("message", "Hello", "completed")]
    ),
    "a call without arguments": Native(
        [*begin(), added(call(""), output_index=0), done(call(""), output_index=0), end(call(""))],
        [("function_call", "{}", "completed")],
    ),
    "a call whose name comes at its end": Native(
        [
            *begin(),
            added({"id": "fc_1", "type": "function_call", "arguments": ""}, output_index=0),
            arguments('{"a":1}', output_index=0),
            done(F, output_index=0),
            end(F),
        ],
        [("function_call", '{"a":1}', "completed")],
    ),
    "arguments that are an object": Native(
        [*begin(), done({**F, "arguments": {"a": 1}}), end()], [("function_call", '{"a": 1}', "completed")]
    ),
    "a hosted tool that is silent about its end": Native(
        [
            *begin(),
            added(SEARCH, output_index=0),
            event("web_search_call.searching", output_index=0, item_id="ws_1"),
            added(HELLO, output_index=1),
            text("Hello", output_index=1),
            end(SEARCH, HELLO),
        ],
        [("web_search_call", "", "completed"), ("message", "Hello", "completed")],
    ),
    "a refusal": Native(
        [
            *begin(),
            added(message("")),
            event("refusal.delta", delta="No", item_id="msg_1"),
            done({**message(""), "content": [{"type": "refusal", "refusal": "No"}]}),
            end(),
        ],
        [("message", "No", "completed")],
    ),
    "cut": Native(
        [*begin(), added(HELLO), text("Hel")],
        [("message", "Hel", "incomplete")],
        "failed",
        {"error": {"code": "server_error", "message": "the stream ended without a terminal event"}},
    ),
    "empty": Native([], [], "failed"),
    "an item that is incomplete in the middle": Native(
        [*begin(), done(call('{"a"', status="incomplete")), done(HELLO), end()],
        [("function_call", '{"a"', "incomplete"), ("message", "Hello", "incomplete")],
        "incomplete",
    ),
    "failed without an error event": Native(
        [*begin(), end(name="failed", error={"code": "insufficient_quota", "message": "pay"})],
        [],
        "failed",
        {"error": {"code": "insufficient_quota", "message": "pay"}},
    ),
    "cancelled": Native([*begin(), event("completed", response={"status": "cancelled"})], [], "failed"),
    "events that say nothing": Native(
        [*begin(), {"type": "keepalive"}, {}, {"type": 3}, done(HELLO), end(HELLO, service_tier="standard")],
        [("message", "Hello", "completed")],
    ),
    "values of other types": Native(
        [
            event("created", response={"id": 3, "tools": None, "temperature": "hot", "created_at": "x"}),
            {"type": "response.output_item.added", "item": None},
            {"type": "response.output_text.delta", "delta": None},
            text("Hello"),
            {"type": "response.output_text.done"},
            end(),
        ],
        [("message", "Hello", "completed")],
    ),
}
