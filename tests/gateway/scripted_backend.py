"""A strict chat backend on loopback, whose answer is a scenario that the model's name picks.

`serve_scripted()` runs it inside a test, `python -m tests.gateway.scripted_backend --port N` as a process, so that any
client can be driven over it. Each chat request is checked against the Chat Completions reference (`faults` of
tests/request/validator.py): one that a strict server would refuse gets 400, and is kept in `Scripted.refused`.

A scenario has turns: the first answers a user message, the next one the tool outputs after it, and so on; the last is
repeated. Where a turn calls a tool, it is the first one offered, or the one whose name it asks for; the arguments are
made from its schema.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.providers.backends import loopback
from tests.providers.backends.loopback import Act, Loopback, Pause, Request, Script, Step
from tests.request.validator import faults

Json: TypeAlias = dict[str, Any]

USAGE: Json = {
    "prompt_tokens": 11,
    "completion_tokens": 7,
    "total_tokens": 18,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
PATCH = "*** Begin Patch\n*** Add File: made.txt\n+made by a patch\n*** End Patch\n"
SHELLS = {
    "exec_command": {"cmd": "echo made by a shell > made.txt"},
    "shell_command": {"command": "echo made by a shell > made.txt"},
    "shell": {"command": ["sh", "-c", "echo made by a shell > made.txt"]},
    "local_shell": {"command": ["sh", "-c", "echo made by a shell > made.txt"]},
}


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer. `deltas`: what the chunks say, in order. `whole`: the message of an answer that is not streamed."""

    deltas: Sequence[Json]
    finish: str | None = "stop"
    whole: Json = field(default_factory=dict[str, Any])
    usage: Json | None = field(default_factory=lambda: USAGE)
    usage_on: str = "alone"  # "alone", "finish", "every"
    pause: float = 0.0  # seconds before each chunk
    breaks: Sequence[Step] = ()  # instead of the end
    done: bool = True


Answering: TypeAlias = Callable[[Json], Turn | Script]


@dataclass(slots=True)
class Scripted:
    """The running backend. `refused`: what was wrong with requests, one list a request that was refused."""

    server: Loopback
    refused: list[list[str]] = field(default_factory=list[list[str]])

    @property
    def url(self) -> str:
        """The base URL, with `/v1`."""
        return f"{self.server.url}/v1"

    async def until_asked(self, count: int) -> None:
        """Wait until so many chat requests have come; fails after ten seconds."""
        for _ in range(1000):
            if len(self.asked) >= count:
                return
            await asyncio.sleep(0.01)
        raise TimeoutError(f"{len(self.asked)} requests came, and {count} were expected")

    @property
    def asked(self) -> list[Json]:
        """The chat requests that came, in order."""
        return [one.body for one in self.server.requests if one.method == "POST"]


# --- what is said ------------------------------------------------------------------------------------------------------


def text(*pieces: str, **more: Any) -> Turn:
    """Return a turn that says `pieces`."""
    deltas = [{"content": piece} for piece in pieces]
    return Turn(deltas, whole={"content": "".join(pieces)}, **more)


def call(name: str, arguments: str, call_id: str = "call_1", index: int | None = 0) -> list[Json]:
    """Return the deltas of a call as OpenAI streams it; without an index where that is None."""
    place = {} if index is None else {"index": index}
    head = {**place, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
    pieces = [arguments[at : at + 5] for at in range(0, len(arguments), 5)]
    tails = [{**place, "function": {"arguments": piece}} for piece in pieces]
    return [{"tool_calls": [one]} for one in (head, *tails)]


def whole_call(name: str, arguments: str, call_id: str = "call_1") -> Json:
    """Return a call as a whole answer holds it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool_of(body: Json, *names: str) -> tuple[str, str]:
    """Return the name of the tool to call, and arguments that its schema allows."""
    tools = [one["function"] for one in body.get("tools") or ()]
    if not tools:
        return (names or ("missing_tool",))[0], "{}"
    meant = next((one for name in names for one in tools if one["name"] == name), tools[0])
    return meant["name"], json.dumps(sample(meant.get("parameters") or {}))


def sample(schema: Json) -> Any:
    """Return a value that a JSON schema allows, for the simple ones that tools have."""
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        kind = next(one for one in kind if one != "null")
    match kind:
        case "object":
            wanted = schema.get("required") or list(schema.get("properties", {}))
            return {name: sample(schema["properties"][name]) for name in wanted if name in schema.get("properties", {})}
        case "array":
            return [sample(schema.get("items", {"type": "string"}))]
        case "integer" | "number":
            return schema.get("minimum", 7)
        case "boolean":
            return True
        case _:
            return "Paris"


def calling(body: Json, *names: str) -> Turn:
    """Return a turn that calls one tool."""
    name, arguments = tool_of(body, *names)
    whole = {"content": None, "tool_calls": [whole_call(name, arguments)]}
    return Turn(call(name, arguments), "tool_calls", whole)


# --- the scenarios -----------------------------------------------------------------------------------------------------


def _after_tools(body: Json) -> Turn:
    outputs = [str(one["content"]) for one in body["messages"] if one["role"] == "tool"]
    return text("The tool said: ", "; ".join(outputs))


def _text_and_tool(body: Json) -> Turn:
    one = calling(body)
    return Turn(
        [{"content": "Let me "}, {"content": "look."}, *one.deltas],
        "tool_calls",
        {**one.whole, "content": "Let me look."},
    )


def _parallel(body: Json) -> Turn:
    name, arguments = tool_of(body)
    deltas = [*call(name, arguments, "call_a", 0), *call(name, arguments, "call_b", 1)]
    whole = {"content": None, "tool_calls": [whole_call(name, arguments, one) for one in ("call_a", "call_b")]}
    return Turn(deltas, "tool_calls", whole)


def _indexed(index: int | None) -> Answering:
    """Two calls, one after the other, with the same index, or with none."""

    def answer(body: Json) -> Turn:
        parallel = _parallel(body)
        name, arguments = tool_of(body)
        deltas = [*call(name, arguments, "call_a", index), *call(name, arguments, "call_b", index)]
        return Turn(deltas, "tool_calls", parallel.whole)

    return answer


def _null_index(body: Json) -> Turn:
    one = _indexed(None)(body)
    assert isinstance(one, Turn)
    deltas = [{"tool_calls": [{**delta["tool_calls"][0], "index": None}]} for delta in one.deltas]
    return Turn(deltas, "tool_calls", one.whole)


def _whole_calls(body: Json) -> Turn:
    name, arguments = tool_of(body)
    calls = [{**whole_call(name, arguments, f"call_{one}"), "index": at} for at, one in enumerate("ab")]
    return Turn([{"tool_calls": calls}], "tool_calls", {"content": None, "tool_calls": calls})


def _empty_arguments(body: Json) -> Turn:
    name, _ = tool_of(body)
    return Turn(call(name, ""), "tool_calls", {"content": None, "tool_calls": [whole_call(name, "")]})


def _reasoning(body: Json) -> Turn:
    deltas = [{"reasoning_content": "Let me "}, {"reasoning_content": "think."}, {"content": "Forty-two."}]
    return Turn(deltas, whole={"reasoning_content": "Let me think.", "content": "Forty-two."})


def _reasoning_tool(body: Json) -> Turn:
    one = calling(body)
    return Turn(
        [{"reasoning_content": "A tool helps."}, *one.deltas],
        "tool_calls",
        {**one.whole, "reasoning_content": "A tool helps."},
    )


def _structured(body: Json) -> Turn:
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    said = json.dumps(sample(schema))
    return text(*(said[at : at + 4] for at in range(0, len(said), 4)))


def _history(body: Json) -> Turn:
    """Say what roles the request's messages have, and the last text."""
    roles = ",".join(one["role"] for one in body["messages"])
    return text(roles, f" | {_said(body['messages'][-1])}")


def _image(body: Json) -> Turn:
    parts = [part for one in body["messages"] if isinstance(one.get("content"), list) for part in one["content"]]
    return text(f"images: {[part['image_url']['url'] for part in parts if part['type'] == 'image_url']}")


def _said(message: Json) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content)
    return str(content)


def _shell(body: Json) -> Turn:
    names = [one["function"]["name"] for one in body.get("tools") or ()]
    name = next((one for one in SHELLS if one in names), "shell")
    arguments = json.dumps(SHELLS[name])
    return Turn(call(name, arguments), "tool_calls", {"content": None, "tool_calls": [whole_call(name, arguments)]})


def _patch(body: Json) -> Turn:
    arguments = json.dumps({"input": PATCH})
    return Turn(
        call("apply_patch", arguments),
        "tool_calls",
        {"content": None, "tool_calls": [whole_call("apply_patch", arguments)]},
    )


def _error(status: str, body: Json, **headers: str) -> Answering:
    return lambda asked: loopback.answer(body, status, **headers)


def _chunk_error(asked: Json) -> Turn:
    """An error in the middle of a stream, as a data line."""
    line = loopback.data({"error": {"message": "the engine died", "type": "server_error", "code": 500}})
    return text("Half an ", "answer", breaks=(line, b""))


def _error_first(asked: Json) -> Script:
    """A status of success whose first line is an error. Source: QuantumNous/new-api#6643."""
    error = {"error": {"message": "rate limited", "code": "rate_limit_exceeded"}}
    return loopback.chunked([loopback.data(error)])


_BAD: Json = {
    "error": {
        "message": "max_tokens is too large",
        "type": "invalid_request_error",
        "param": "max_tokens",
        "code": None,
    }
}
_LIMIT: Json = {"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}}
_FAILED: Json = {"error": {"message": "the engine failed", "type": "server_error"}}
_LONG: Json = {
    "error": {"message": "This model's maximum context length is 10 tokens", "code": "context_length_exceeded"}
}

SCENARIOS: dict[str, tuple[Answering, ...]] = {
    "text": (lambda body: text("Hello", " there", "!"),),
    "tool": (calling, _after_tools),
    "text-and-tool": (_text_and_tool, _after_tools),
    "parallel": (_parallel, _after_tools),
    "missing-index": (_indexed(None), _after_tools),
    "same-index": (_indexed(0), _after_tools),
    "null-index": (_null_index, _after_tools),
    "whole-calls": (_whole_calls, _after_tools),
    "empty-arguments": (_empty_arguments, _after_tools),
    "reasoning": (_reasoning,),
    "reasoning-tool": (_reasoning_tool, _after_tools),
    "refusal": (
        lambda body: Turn(
            [{"refusal": "I will "}, {"refusal": "not."}], whole={"content": None, "refusal": "I will not."}
        ),
    ),
    "length": (lambda body: text("This is cut", finish="length"),),
    "content-filter": (lambda body: text("This is", finish="content_filter"),),
    "structured": (_structured,),
    "usage-none": (lambda body: text("No usage.", usage=None),),
    "usage-finish": (lambda body: text("Usage with the finish.", usage_on="finish"),),
    "usage-every": (lambda body: text("Usage", " on", " every chunk.", usage_on="every"),),
    "error-400": (_error("400 Bad Request", _BAD),),
    "error-429": (_error("429 Too Many Requests", _LIMIT, retry_after="7"),),
    "error-500": (_error("500 Internal Server Error", _FAILED),),
    "error-context": (_error("400 Bad Request", _LONG),),
    "error-first-line": (_error_first,),
    "error-mid-stream": (_chunk_error,),
    "disconnect": (lambda body: text("Half an ", "answer", breaks=(Act.RESET,)),),
    "cut": (lambda body: text("Half an ", "answer", finish=None, usage=None, done=False),),
    "slow": (lambda body: text(*(f"{one} " for one in range(100)), pause=0.2),),
    "silent": (lambda body: text("At last.", pause=1.0),),
    "hang": (lambda body: text("Then nothing", breaks=(Act.HANG,)),),
    "image": (_image,),
    "history": (_history,),
    "codex-shell": (_shell, _after_tools),
    "codex-patch": (_patch, _after_tools),
}
# scenarios that fail so often, and then answer as "text" does; counted for each prompt, so that clients do not meet
FLAKY = {"error-500-then-ok": (1, "error-500"), "error-429-then-ok": (1, "error-429-now")}
SCENARIOS["error-429-now"] = (_error("429 Too Many Requests", _LIMIT, retry_after="0"),)
PREFIX = "scripted/"


# --- the server --------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def serve_scripted(port: int = 0) -> AsyncIterator[Scripted]:
    """Run the backend while the block lasts."""
    seen: dict[str, int] = {}
    refused: list[list[str]] = []

    def script(request: Request) -> Script:
        if request.method == "GET":
            listed = [
                {"id": name, "object": "model", "created": 1, "owned_by": "scripted"} for name in (*SCENARIOS, *FLAKY)
            ]
            return loopback.answer({"object": "list", "data": listed})
        body: Json = request.body
        wrong = [*_strict(body), *faults(body)]
        if wrong:
            refused.append(wrong)
            said = {"message": "; ".join(wrong), "type": "invalid_request_error", "param": None, "code": "refused"}
            return loopback.answer({"error": said}, "400 Bad Request")
        return answered(body, seen)

    async with loopback.serve(script, port) as server:
        yield Scripted(server, refused)


def answered(body: Json, seen: dict[str, int]) -> Script:
    """Return the answer to a chat request, as what goes over the network. `seen` counts requests to flaky scenarios."""
    name = body["model"].removeprefix(PREFIX)
    if name in FLAKY:
        key = f"{name} {json.dumps(body['messages'], sort_keys=True)}"
        times, failing = FLAKY[name]
        seen[key] = seen.get(key, 0) + 1
        name = failing if seen[key] <= times else "text"
    turns = SCENARIOS.get(name)
    if turns is None:
        return loopback.answer({"error": {"message": f"no model {name}", "code": "model_not_found"}}, "404 Not Found")
    turn = turns[min(_rounds(body), len(turns) - 1)](body)
    if not isinstance(turn, Turn):
        return turn
    return list(_streamed(turn, body)) if body.get("stream") else _whole(turn, body)


def _strict(body: Json) -> Iterator[str]:
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "no model"
    if not isinstance(body.get("messages"), list):
        yield "no messages"
    if not isinstance(body.get("stream", False), bool):
        yield "stream is no bool"


def _rounds(body: Json) -> int:
    """Return how many assistant messages there are after the last user message."""
    count = 0
    for one in reversed(body["messages"]):
        if one["role"] == "user":
            break
        count += one["role"] == "assistant"
    return count


def _streamed(turn: Turn, body: Json) -> Iterator[Step]:
    asks = (body.get("stream_options") or {}).get("include_usage")
    usage = turn.usage if asks else None
    finish = [_chunk(body, {}, turn.finish)] if turn.finish is not None and not turn.breaks else []
    said = [_chunk(body, delta) for delta in ({"role": "assistant", "content": ""}, *turn.deltas)]
    chunks = [*said, *finish]
    if usage is not None and turn.usage_on == "every":
        chunks = [{**one, "usage": usage} for one in chunks]
    elif usage is not None and turn.usage_on == "finish" and finish:
        chunks[-1] = {**chunks[-1], "usage": usage}
    elif usage is not None and finish:
        chunks.append({**_chunk(body, {}), "choices": [], "usage": usage})
    yield loopback.head(content_type="text/event-stream", transfer_encoding="chunked")
    for one in chunks:
        if turn.pause:
            yield Pause(turn.pause)
        yield _framed(loopback.data(one))
    for step in turn.breaks:
        yield _framed(step) if isinstance(step, bytes) and step else step
    if not turn.breaks and turn.done:
        yield _framed(loopback.data("[DONE]"))
    if not any(isinstance(step, Act) for step in turn.breaks):
        yield b"0\r\n\r\n"


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _chunk(body: Json, delta: Json, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": body["model"]}
    return {**base, "choices": [choice]}


def _whole(turn: Turn, body: Json) -> Script:
    base = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1700000000, "model": body["model"]}
    if any(step is Act.HANG for step in turn.breaks):
        return [Act.HANG]
    if turn.breaks:
        return [Act.RESET]
    message = {"role": "assistant", "content": None, **turn.whole}
    choices = [{"index": 0, "message": message, "finish_reason": turn.finish}]
    usage = {} if turn.usage is None else {"usage": turn.usage}
    pause = [Pause(turn.pause * len(turn.deltas))] if turn.pause else []
    return [*pause, *loopback.answer({**base, "choices": choices, **usage})]


async def _main(port: int) -> None:
    async with serve_scripted(port) as scripted:
        print(scripted.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, default=0)
    asyncio.run(_main(options.parse_args().port))
