"""Live checks against scripted servers: a good one gives no finding, each bad one what is wrong with it."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from antiphon.backend import Timeouts
from antiphon.errors import AuthenticationFailed, BadInput, ConnectionFailed, NotFound, ProviderError
from antiphon.profile import DEFAULT, Profile
from antiphon_conformance import Level
from antiphon_conformance.chunks import AnswerTrace
from antiphon_conformance.examples.chunks import chunks_for
from antiphon_conformance.exchange import Api, Exchange
from antiphon_conformance.live import Budget, LiveOptions, Step, check_live, describe
from antiphon_conformance.results import Layer, Outcome, SuiteReport

from .live_server import MODEL, Answering, Chunks, Faulty, Json, Scripted, answer, event, serve

SHORT = Timeouts(connect=2.0, first_byte=1.0, idle=1.0, total=3.0)
AMPLE = Timeouts(connect=10.0, first_byte=30.0, idle=30.0, total=60.0)
KEY = "sk-a-key-that-nobody-may-see"


async def run(
    probes: Sequence[str] = (),
    faulty: Faulty | None = None,
    whole: Callable[[Answering], Any] | None = None,
    **options: Any,
) -> tuple[SuiteReport, Scripted]:
    """Return the report on a scripted server, and the server."""
    async with serve(faulty, whole) as server:
        given = {"url": server.url, "model": MODEL, "probes": tuple(probes), "timeouts": AMPLE, **options}
        return await asyncio.to_thread(check_live, LiveOptions(**given)), server


def codes(report: SuiteReport, layer: Layer, *levels: Level) -> set[str]:
    """Return the codes of what is broken in a layer."""
    wanted = levels or (Level.MUST, Level.SHOULD)
    return {one.code for run in report.runs if run.layer is layer for one in run.findings if one.level in wanted}


def left_out(report: SuiteReport) -> dict[str, str]:
    """Return why probes were not put."""
    return {run.case: run.reason for run in report.runs if run.layer is Layer.CHUNKS and not run.ran}


def texts_in(folder: Path) -> list[str]:
    """Return what is in the files of a folder."""
    return [path.read_text(encoding="utf-8") for path in folder.iterdir()]


# --- a good server ---------------------------------------------------------------------------------------------------


async def test_a_good_server_gives_no_finding_and_its_recording_the_same_report(tmp_path: Path) -> None:
    report, server = await run(record=tmp_path, api_key=KEY, headers={"X-Team-Token": "team-secret-token"})
    assert [str(one) for run in report.runs for one in run.findings] == []
    assert report.exit_status == 0
    assert report.notes == ("works: the chunk stream is what OpenAI's own server would send",)
    assert report.profile == 'from antiphon.profile import Profile\n\nPROFILE = Profile(\n    "fitted",\n)'
    assert not left_out(report)
    assert {headers.get("authorization") for headers in server.headers} == {f"Bearer {KEY}"}
    written = "".join(texts_in(tmp_path))
    assert KEY not in written
    assert "team-secret-token" not in written
    assert "uthorization" not in written
    assert await asyncio.to_thread(check_live, LiveOptions(replay=tmp_path)) == report


async def test_what_is_sent_is_told_before_and_progress_while_it_is_sent() -> None:
    steps: list[Step] = []
    async with serve() as server:
        options = LiveOptions(url=f"{server.url}?key={KEY}", model=MODEL, probes=("text", "call*"), concurrency=3)
        told = describe(options)
        report = await asyncio.to_thread(check_live, options, steps.append)
    assert KEY not in told
    assert f"{server.count} requests" in told
    probes = {run.case for run in report.runs}
    assert Counter(step.probe for step in steps) == dict.fromkeys(probes, 2)
    assert [step for step in steps if step.outcome is not None and step.outcome is not Outcome.PASS] == []
    assert {step.total for step in steps} == {len(probes)}


async def test_the_first_model_that_is_listed_is_asked() -> None:
    report, server = await run(["text"], model="")
    assert (report.subject.name, report.subject.kind) == (f"{server.url} {MODEL}", "server")
    assert report.exit_status == 0


# --- chunks that are wrong -------------------------------------------------------------------------------------------


def each(change: Callable[[Json], Any]) -> Faulty:
    """Return the change of every chunk."""

    def changed(chunks: Chunks, body: Json) -> Chunks:
        for chunk in chunks:
            change(chunk)
        return chunks

    return changed


def each_delta(change: Callable[[Json], Any]) -> Faulty:
    """Return the change of every delta."""
    return each(lambda chunk: [change(choice["delta"]) for choice in chunk["choices"]])


def no_finish(chunks: Chunks, body: Json) -> Chunks:
    return [chunk for chunk in chunks if not any(choice["finish_reason"] for choice in chunk["choices"])]


def whole_calls(chunks: Chunks, body: Json) -> Chunks:
    """Send each call in one chunk, without an index."""
    calls: dict[int, Json] = {}
    kept: Chunks = []
    for chunk in chunks:
        held = [call for choice in chunk["choices"] for call in choice["delta"].get("tool_calls", ())]
        kept += [] if held and held[0]["index"] in calls else [chunk]
        for call in held:
            first = calls.setdefault(call.get("index", 0), call)
            if first is not call:
                first["function"]["arguments"] += call["function"]["arguments"]
    for call in calls.values():
        del call["index"]
    return kept


def drop_usage(chunks: Chunks, body: Json) -> Chunks:
    return [chunk for chunk in chunks if chunk["choices"]]


def usage_at_the_finish(chunks: Chunks, body: Json) -> Chunks:
    *rest, last = chunks
    return chunks if last["choices"] else [*rest[:-1], {**rest[-1], "usage": last["usage"]}]


def late_text(chunks: Chunks, body: Json) -> Chunks:
    late = {**chunks[0], "choices": [{**chunks[0]["choices"][0], "delta": {"content": "!"}}]}
    return [*chunks, late] if chunks[-1]["choices"] else [*chunks[:-1], late, chunks[-1]]


FAULTY: list[tuple[str, Faulty, set[str]]] = [
    ("no role", each_delta(lambda delta: delta.pop("role", None)), {"CHT020"}),
    ("the role on every chunk", each_delta(lambda delta: delta.update(role="assistant")), {"CHT021"}),
    ("no finish_reason", no_finish, {"CHT040"}),
    ("created moves", lambda chunks, _: [{**one, "created": n} for n, one in enumerate(chunks)], {"CHT012"}),
    ("ids change", lambda chunks, _: [{**one, "id": f"c{n}"} for n, one in enumerate(chunks)], {"CHT011"}),
    ("another object", each(lambda chunk: chunk.update(object="text_completion")), {"CHT010"}),
    ("whole calls without index", whole_calls, {"CHT030"}),
    ("no usage", drop_usage, {"CHT060"}),
    ("usage beside the finish", usage_at_the_finish, {"CHT061"}),
    ("a chunk that is no object", lambda chunks, _: [*chunks[:-1], 5, chunks[-1]], {"CHT004"}),  # type: ignore[list-item]  # it is the fault
    ("text after the finish", late_text, {"CHT043"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "faulty", "expected"), FAULTY, ids=[one[0] for one in FAULTY])
async def test_a_faulty_chunk_stream_is_found_and_comes_out_right(
    name: str, faulty: Faulty, expected: set[str], tmp_path: Path
) -> None:
    report, _ = await run(["text", "usage", "call"], faulty, record=tmp_path)
    assert codes(report, Layer.CHUNKS) == expected
    assert codes(report, Layer.EVENTS) == set()
    assert report.notes[0].startswith("works, through these quirks: ")
    assert await asyncio.to_thread(check_live, LiveOptions(replay=tmp_path)) == report


def lost_piece(chunks: Chunks, body: Json) -> Chunks:
    return [*chunks[:2], *chunks[3:]]


def one_choice(chunks: Chunks, body: Json) -> Chunks:
    return [chunk for chunk in chunks if not chunk["choices"] or chunk["choices"][0]["index"] == 0]


def saying(text: str, times: int = 1) -> Faulty:
    """Return the fault that more text comes, in so many chunks."""

    def said(chunks: Chunks, body: Json) -> Chunks:
        more = {**chunks[1], "choices": [{**chunks[1]["choices"][0], "delta": {"content": text}}]}
        return [chunks[0], *([more] * times), *chunks[1:]]

    return said


def calling_all_the_same(chunks: Chunks, body: Json) -> Chunks:
    return chunks_for({**body, "tool_choice": "auto"}, 1)


def no_logprobs(chunks: Chunks, body: Json) -> Chunks:
    return each(lambda chunk: [choice.update(logprobs=None) for choice in chunk["choices"]])(chunks, body)


def one_id(chunks: Chunks, body: Json) -> Chunks:
    return [{**chunk, "id": "chatcmpl-always"} for chunk in chunks]


SPECIAL: list[tuple[str, Faulty, set[str]]] = [
    ("same-text", lost_piece, {"CHT076"}),
    ("two-choices", one_choice, {"CHT071"}),
    ("stop-word", saying("4, "), {"CHT072"}),
    ("limit-max-tokens", saying("on ", 40), {"CHT073"}),
    ("choice-none", calling_all_the_same, {"CHT074"}),
    ("json-schema", saying("Sure: "), {"CHT075"}),
    ("logprobs", no_logprobs, {"CHT070"}),
    ("two-at-once", one_id, {"CHT077"}),
]


@pytest.mark.parametrize(("probe", "faulty", "expected"), SPECIAL, ids=[one[0] for one in SPECIAL])
async def test_a_probe_finds_what_it_looks_at(probe: str, faulty: Faulty, expected: set[str]) -> None:
    report, _ = await run([probe], faulty)
    assert codes(report, Layer.CHUNKS) == expected
    assert codes(report, Layer.EVENTS, Level.MUST) == set()


class Slots:
    """A server with two slots. A client that leaves frees its slot, or it does not."""

    def __init__(self, frees: bool) -> None:
        self.frees, self.taken, self.left = frees, 0, 0

    async def __call__(self, one: Answering) -> None:
        if self.taken >= 2:
            await one.error("503 Service Unavailable", "all slots are busy", None, "server_error")
            return
        self.taken += 1
        try:
            await answer(one, slowly, 1)
        except ConnectionError:
            self.left += 1
            if not self.frees:
                return
        self.taken -= 1


def slowly(chunks: Chunks, body: Json) -> Chunks:
    """Send so much that a client that leaves is noticed."""
    return saying("x" * 4000, 4000 if body.get("max_completion_tokens", 0) > 400 else 0)(chunks, body)


@pytest.mark.parametrize(("frees", "expected"), [(True, set[str]()), (False, {"WIR004"})])
async def test_clients_that_leave(frees: bool, expected: set[str]) -> None:
    server = Slots(frees)
    report, _ = await run(["leave"], whole=server)
    assert codes(report, Layer.CHUNKS) == expected
    assert server.left == (3 if frees else 2)


async def served_all_the_same(one: Answering) -> None:
    """Serve whatever is asked."""
    one.body = {**one.body, "model": MODEL, "messages": [{"role": "user", "content": "Hi"}], "response_format": ""}
    await answer(one, None, 1)


@pytest.mark.parametrize(
    ("whole", "expected"), [(served_all_the_same, {"CHT051"}), (lambda one: plain_500(one), {"CHT050", "CHT051"})]
)
async def test_requests_that_must_be_refused(whole: Callable[[Answering], Any], expected: set[str]) -> None:
    report, _ = await run(["bad-*"], whole=whole)
    assert codes(report, Layer.CHUNKS) == expected
    assert {run.case for run in report.runs if run.layer is Layer.CHUNKS and run.findings} == {
        "bad-model", "bad-request", "bad-format",
    }  # fmt: skip


# --- servers that are none -------------------------------------------------------------------------------------------


async def page(one: Answering) -> None:
    await one.begin("text/html")
    await one.send(b"<html><title>Welcome</title></html>")


async def hang(one: Answering) -> None:
    await asyncio.sleep(30)


async def never_finish(one: Answering) -> None:
    await one.begin()
    for number in range(300):
        await one.send(event({"id": "c", "object": "chat.completion.chunk", "choices": [], "n": number}))
        await asyncio.sleep(0.1)


async def silent_in_the_middle(one: Answering) -> None:
    await one.begin()
    await one.send(b": hello\n\n")
    await asyncio.sleep(30)


async def endless_line(one: Answering) -> None:
    await one.begin()
    await one.send(b'data: {"id": "')
    for _ in range(1600):
        await one.send(b"x" * 65536)


async def close(one: Answering) -> None:
    """Say nothing at all."""


async def redirect(one: Answering) -> None:
    await one.begin("text/plain", "307 Temporary Redirect", location="http://127.0.0.1:9/elsewhere")


async def failing(one: Answering) -> None:
    await one.error("500 Internal Server Error", "out of memory", None, "server_error")


async def plain_500(one: Answering) -> None:
    await one.begin("text/plain", "500 Internal Server Error")
    await one.send(b"Internal Server Error")


async def compressed(one: Answering) -> None:
    await one.begin(**{"content-encoding": "gzip"})
    await one.send(b"this is no gzip")


async def no_http(one: Answering) -> None:
    await one.send(b"SSH-2.0-OpenSSH_9.2p1\r\n")


async def not_streamed(one: Answering) -> None:
    await one.begin("application/json")
    message = {"role": "assistant", "content": "The sea."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    await one.send(json.dumps({"id": "c", "object": "chat.completion", "created": 1, "choices": [choice]}).encode())


NONE: list[tuple[Callable[[Answering], Any], set[str], str]] = [
    (page, {"CHT001", "CHT002"}, "Welcome"),
    (hang, {"CHT001"}, "no byte of the answer came within 1 s"),
    (never_finish, {"CHT003", "CHT010", "CHT014", "CHT012", "CHT013"}, "the answer was not complete within 3 s"),
    (silent_in_the_middle, {"CHT001"}, "the stream was silent for 1 s"),
    (endless_line, {"CHT001"}, "the answer is longer than 2097152 bytes"),
    (close, {"CHT001"}, "without sending a response"),
    (redirect, {"CHT001"}, "the status is 307 to 'http://127.0.0.1:9/elsewhere'"),
    (failing, {"CHT001"}, "out of memory"),
    (plain_500, {"CHT001", "CHT050"}, "Internal Server Error"),
    (compressed, {"CHT001"}, "this is no gzip"),
    (no_http, {"CHT001"}, "no answer came"),
    (not_streamed, {"CHT001", "CHT002"}, "application/json"),
]


@pytest.mark.parametrize(("whole", "expected", "said"), NONE, ids=[one[0].__name__ for one in NONE])
async def test_what_is_no_chat_server_is_told_clearly(
    whole: Callable[[Answering], Any], expected: set[str], said: str, tmp_path: Path
) -> None:
    report, server = await run(["text"], whole=whole, record=tmp_path, timeouts=SHORT)
    assert codes(report, Layer.CHUNKS) <= expected
    assert {"CHT001", "CHT003"} & codes(report, Layer.CHUNKS)
    assert said in " ".join(one.message for run in report.runs for one in run.findings)
    assert report.exit_status == 1
    assert server.count == 1
    assert sum(map(len, texts_in(tmp_path))) < 9 * 2**20
    assert await asyncio.to_thread(check_live, LiveOptions(replay=tmp_path)) == report


async def test_a_server_that_does_not_answer_is_asked_once() -> None:
    report, server = await run(whole=hang, timeouts=SHORT)
    assert server.count == 1
    reasons = set(left_out(report).values())
    assert len(reasons) == 1
    assert "the server did not answer the first probe" in reasons.pop()
    assert report.notes == ("does not work: no answer could be converted",)


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("scheme", ["https", "http"])
async def test_tls_where_none_is_and_a_closed_port(scheme: str, api: Api) -> None:
    async with serve() as server:
        url = server.url.replace("http", scheme, 1)
        options = LiveOptions(url=url, model=MODEL, api=api, timeouts=SHORT)
        if scheme == "https":
            with pytest.raises(ConnectionFailed, match="cannot be reached, so nothing was judged: the connection"):
                await asyncio.to_thread(check_live, options)
    if scheme == "http":
        with pytest.raises(ConnectionFailed, match=f"{url} cannot be reached, so nothing was judged: the connection"):
            await asyncio.to_thread(check_live, options)


# --- servers that can answer no probe ---------------------------------------------------------------------------------


def with_error(status: str, message: str, code: str | None = None) -> Callable[[Answering], Any]:
    """Return a server that answers every POST with an error as OpenAI's, and lists its models."""

    async def whole(one: Answering) -> None:
        await (answer(one, None, 1) if one.method == "GET" else one.error(status, message, code))

    return whole


def with_body(status: str, body: bytes, content_type: str = "application/json") -> Callable[[Answering], Any]:
    """Return a server that answers everything with the same."""

    async def whole(one: Answering) -> None:
        await one.begin(content_type, status)
        await one.send(body)

    return whole


LOST = with_body("404 Not Found", b"<html>Not Found</html>", "text/html")
LOST_API = with_body("404 Not Found", b'{"detail": "Not Found"}')
NO_ENTRY = with_error("401 Unauthorized", f"Incorrect API key provided: {KEY}", "invalid_api_key")
FORBIDDEN = with_body("403 Forbidden", b'{"message": "Forbidden"}')
WRONG_METHOD = with_body("405 Method Not Allowed", b'{"detail": "Method Not Allowed"}')
NO_MODEL = with_error("404 Not Found", "The model `scriptd` does not exist", "model_not_found")
AT = "nothing takes requests at {url}/chat/completions, so nothing was judged: status 404"
# name -> the server, how it is asked, the error, what that says, the requests that are sent
HOPELESS: dict[str, tuple[Callable[[Answering], Any], dict[str, Any], type[Exception], str, int]] = {
    "no such path": (LOST, {}, NotFound, AT, 1),
    "no such path, in JSON": (LOST_API, {}, NotFound, f"{AT}: Not Found", 1),
    "no such path, and what is asked for may be missing": (LOST, {"probes": ("image",)}, NotFound, AT, 1),
    "a path that takes no POST": (WRONG_METHOD, {}, NotFound, "status 405: Method Not Allowed; the URL to give is", 1),
    "a server of chat that is asked for Responses": (
        LOST_API,
        {"api": "responses"},
        NotFound,
        "{url}/responses, so nothing was judged: status 404: Not Found; the URL to give is the base of the API, such as "
        "http://127.0.0.1:8000/v1, and a server that speaks Chat Completions is asked with --api chat",
        1,
    ),
    "no key": (NO_ENTRY, {}, AuthenticationFailed, "{url} refuses requests without a key, so nothing was judged:", 1),
    "another key": (NO_ENTRY, {"api_key": KEY}, AuthenticationFailed, "{url} refuses the key that was sent, so", 1),
    "no key, and no model": (
        with_body("401 No", b"{}"),
        {"model": ""},
        AuthenticationFailed,
        "{url} refuses requests",
        1,
    ),
    "no access": (
        FORBIDDEN,
        {},
        AuthenticationFailed,
        "{url} refuses requests without a key, so nothing was judged",
        1,
    ),
    "no such model": (
        NO_MODEL,
        {"model": f"{MODEL}s"},
        NotFound,
        f"{{url}} has no model '{MODEL}s', so nothing was judged: status 404: The model `scriptd` does not exist; did "
        f"you mean '{MODEL}'? It lists {MODEL}",
        2,  # and the list of models
    ),
}


@pytest.mark.parametrize("name", HOPELESS)
@pytest.mark.parametrize("concurrency", [1, 4])
async def test_a_server_that_can_answer_no_probe_is_asked_once_and_told_in_one_message(
    name: str, concurrency: int
) -> None:
    whole, options, kind, said, requests = HOPELESS[name]
    async with serve(whole=whole) as server:
        given = {"url": server.url, "model": MODEL, "timeouts": AMPLE, "concurrency": concurrency, **options}
        with pytest.raises(ProviderError) as raised:
            await asyncio.to_thread(check_live, LiveOptions(**given))
    assert type(raised.value) is kind
    assert said.format(url=server.url) in str(raised.value)
    assert KEY not in str(raised.value)
    assert server.count == requests


@pytest.mark.parametrize(
    ("path", "meant"),
    [("", ""), ("/v1", ""), ("/v1/", ""), ("/v1/chat/completions", ""), ("/api", "; did you mean {}/api/v1?")],
)
async def test_the_url_that_was_asked_is_told(path: str, meant: str) -> None:
    async with serve(whole=LOST) as server:
        root = server.url.removesuffix("/v1")
        with pytest.raises(NotFound) as raised:
            await asyncio.to_thread(check_live, LiveOptions(url=f"{root}{path}", model=MODEL, timeouts=AMPLE))
    asked = f"{root}{path or '/v1'}".rstrip("/").removesuffix("/chat/completions")
    assert f"at {asked}/chat/completions, so nothing was judged: status 404{meant.format(root)}" in str(raised.value)


@pytest.mark.parametrize("alike", [redirect, page, failing, with_error("429 Too Many Requests", "quota")])
async def test_a_server_that_answers_all_first_probes_alike_is_judged_by_these(
    alike: Callable[[Answering], Any],
) -> None:
    report, server = await run(whole=alike)
    assert (server.count, report.exit_status) == (3, 1)
    assert len([run for run in report.runs if "the first 3 probes were all answered with" in run.reason]) > 40
    assert "CHT001" in codes(report, Layer.CHUNKS)


ONLY_SOME: dict[str, Callable[[Answering, int], Any]] = {
    "all but the first": lambda one, number: one.error("404 Not Found", "gone", None) if number else None,
    "features": lambda one, number: one.error("403 Forbidden", "no tools", None) if one.body.get("tools") else None,
    "every second": lambda one, number: one.error("401 Unauthorized", "who?", None) if number % 2 else None,
    "the first three but one": lambda one, number: one.error("503 Busy", "busy", None) if number in (0, 2) else None,
}


@pytest.mark.parametrize("name", ONLY_SOME)
async def test_a_server_that_fails_some_probes_is_judged_by_all(name: str) -> None:
    numbers = iter(range(1000))

    async def whole(one: Answering) -> None:
        refused = ONLY_SOME[name](one, next(numbers))
        await (refused if refused is not None else answer(one, None, 1))

    report, server = await run(whole=whole)
    assert server.count > 40
    assert not [reason for reason in left_out(report).values() if "answered" in reason]
    assert any(run.findings for run in report.runs)


async def test_a_server_that_goes_away_between_probes_is_found() -> None:
    answered: list[str] = []

    async def once(one: Answering) -> None:
        if not answered:
            answered.append(one.path)
            await answer(one, None, 1)

    report, _ = await run(["text", "usage", "length"], whole=once, timeouts=SHORT)
    found = {run.case: [one.message for one in run.findings] for run in report.runs if run.layer is Layer.CHUNKS}
    assert found["text"] == []
    assert any("no answer came" in message for message in found["usage"])
    assert report.exit_status == 1


async def endless(one: Answering) -> None:
    """Answer with chunks without end."""
    await one.begin()
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    said = {"index": 0, "delta": {"content": "and so on "}, "finish_reason": None}
    many = event({**chunk, "choices": [said]}) * 200
    while True:
        await one.send(many)


async def test_answers_without_end_are_read_three_times_and_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Exchange] = []
    begun = AnswerTrace.__init__

    def counted(self: AnswerTrace, exchange: Exchange) -> None:
        read.append(exchange)
        begun(self, exchange)

    monkeypatch.setattr(AnswerTrace, "__init__", counted)
    report, server = await run(whole=endless, api="responses")
    assert server.count == 3
    assert "the last 3 answers had no end" in left_out(report).values()
    assert len(read) == 3
    assert all(sum(len(piece.data) for piece in exchange.pieces) <= 2**21 for exchange in read)


# --- the profile that fits -------------------------------------------------------------------------------------------


def thinking(chunks: Chunks, body: Json) -> Chunks:
    """Put thoughts between tags before the text."""
    for choice in (choice for chunk in chunks for choice in chunk["choices"]):
        if choice["delta"].get("content"):
            choice["delta"]["content"] = f"<think>The sea?</think>{choice['delta']['content']}"
            break
    return chunks


def cumulative(chunks: Chunks, body: Json) -> Chunks:
    """Send the whole text so far each time."""
    so_far = ""
    for choice in (choice for chunk in chunks for choice in chunk["choices"]):
        if choice["delta"].get("content"):
            so_far += choice["delta"]["content"]
            choice["delta"]["content"] = so_far
    return chunks


def other_reasoning(chunks: Chunks, body: Json) -> Chunks:
    first = chunks[0]["choices"][0]
    return [chunks[0], {**chunks[0], "choices": [{**first, "delta": {"thinking_text": "Hm."}}]}, *chunks[1:]]


def as_text(chunks: Chunks, body: Json) -> Chunks:
    """Say calls as text."""
    calls = [call for chunk in chunks for choice in chunk["choices"] for call in choice["delta"].get("tool_calls", ())]
    if not calls:
        return chunks
    arguments = "".join(call["function"]["arguments"] for call in calls)
    said = f'<tool_call>{{"name": "get_weather", "arguments": {arguments}}}</tool_call>'
    first, last = chunks[0], next(chunk for chunk in chunks if chunk["choices"][0]["finish_reason"])
    delta = {**first, "choices": [{**first["choices"][0], "delta": {"role": "assistant", "content": said}}]}
    return [
        delta,
        {**last, "choices": [{**last["choices"][0], "finish_reason": "stop"}]},
        *chunks[chunks.index(last) + 1 :],
    ]


def refusing(*words: str) -> Callable[[Answering], Any]:
    """Return the server that refuses requests in which one of these words is, and answers all others."""

    async def answered(one: Answering) -> None:
        text = json.dumps(one.body)
        found = next((word for word in words if word in text), None)
        if found is None:
            await answer(one, None, 1)
        else:
            await one.error("400 Bad Request", f"{found} is not known here", None)

    return answered


# The probes that say something about what a server takes.
TAKING = (
    "text", "limit-*", "usage", "system", "developer", "two-systems", "history*", "image", "call", "calls-one-by-one",
    "strict-tool", "reasoning", "reasoning-effort", "json-*", "choice-*",
)  # fmt: skip

Fitting = tuple[str, dict[str, Any], dict[str, Any]]
FITTING: list[Fitting] = [
    ("finish_reason", {"faulty": no_finish}, {"finish_reason_optional": True}),
    ("another field", {"faulty": other_reasoning}, {"reasoning_fields": ("thinking_text", *DEFAULT.reasoning_fields)}),
    ("developer", {"whole": refusing('"developer"')}, {"developer_role": False}),
    ("the newer limit", {"whole": refusing("max_completion_tokens")}, {"max_tokens_field": "max_tokens"}),
    ("usage", {"whole": refusing("stream_options")}, {"stream_usage": False}),
    ("images", {"whole": refusing("image_url")}, {"images": False}),
    ("formats", {"whole": refusing("json_schema")}, {"response_formats": frozenset({"text", "json_object"})}),
    ("no parallel_tool_calls", {"whole": refusing("parallel_tool_calls")}, {"parallel_tool_calls": False}),
    ("strict", {"whole": refusing('"strict": true')}, {"strict_tools": False, "response_formats": frozenset({"text", "json_object"})}),
    ("content null", {"whole": refusing('"content": null')}, {"null_content_with_calls": False}),
    ("effort", {"whole": refusing("reasoning_effort")}, {"effort_field": "none"}),
    ("required", {"whole": refusing('"tool_choice": "required"')}, {"tool_choice_modes": frozenset({"auto", "none", "named"})}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "facts"), FITTING, ids=[one[0] for one in FITTING])
async def test_the_profile_says_what_a_server_needs(name: str, given: dict[str, Any], facts: dict[str, Any]) -> None:
    report, _ = await run(TAKING, **given)
    assert made(report.profile) == replace(DEFAULT, name="fitted", **facts)
    assert codes(report, Layer.EVENTS, Level.MUST) == set()
    assert report.notes[0].startswith("works, through these quirks: ")


def made(source: str) -> Profile:
    """Return the profile that its printed source makes."""
    held: dict[str, Any] = {}
    exec(source, held)  # it is what a user pastes
    profile = held["PROFILE"]
    assert isinstance(profile, Profile)
    return profile


@pytest.mark.parametrize(
    ("faulty", "quirk", "items"),
    [
        (thinking, "SplitTags", {"reasoning", "message", "function_call"}),
        (cumulative, "CumulativeText", {"message", "function_call"}),
        (as_text, "ToolCallTags", {"message", "function_call"}),
    ],
    ids=["thinking", "cumulative", "as_text"],
)
async def test_with_the_profile_the_quirk_is_gone_from_the_output(faulty: Faulty, quirk: str, items: set[str]) -> None:
    report, _ = await run(["text", "call"], faulty)
    profile = made(report.profile)
    assert [type(one).__name__ for one in profile.quirks] == [quirk]
    assert codes(report, Layer.EVENTS, Level.MUST) == set()
    output = [item for run in report.runs if run.events for item in run.events[-1]["response"]["output"]]
    assert {item["type"] for item in output} == items
    texts = [part["text"] for item in output if item["type"] == "message" for part in item["content"]]
    assert set(texts) == {"The sea is wide and deep."}


# --- bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (Budget(requests=3), "the budget of 3 requests is used up"),
        (Budget(tokens=900), "the budget of 900 tokens does not allow it"),
        (Budget(seconds=0.5), "the budget of 0.5 s is used up"),
    ],
)
async def test_the_budget_is_kept(budget: Budget, said: str, tmp_path: Path) -> None:
    report, server = await run(budget=budget, record=tmp_path)
    assert any(said in reason for reason in left_out(report).values())
    assert 0 < server.count < 60
    assert budget.requests is None or server.count <= budget.requests
    assert await asyncio.to_thread(check_live, LiveOptions(replay=tmp_path)) == report


SCRIPT = """
import asyncio, os, signal, sys
sys.path.insert(0, sys.argv[1])
from antiphon_conformance.live import LiveOptions, check_live
from tests.conformance.live_server import MODEL
def progress(step):
    if step.probe == "system":
        os.kill(os.getpid(), signal.SIGINT)
report = check_live(LiveOptions(url=sys.argv[2], model=MODEL), progress)
print(report.exit_status, len(report.runs), report.notes[0])
"""


async def test_ctrl_c_leaves_a_valid_report() -> None:
    root = Path(__file__).parents[2]
    async with serve() as server:
        command = [sys.executable, "-c", SCRIPT, str(root), server.url]
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = await asyncio.wait_for(process.communicate(), 60)
    assert err == b""
    assert re.fullmatch(r"130 \d+ the run was interrupted: .*\n", out.decode())
    assert process.returncode == 0


# --- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (LiveOptions(), "url is empty"),
        (LiveOptions(url="nonsense", model="x"), "base_url"),
        (
            LiveOptions(url="http://127.0.0.1:9", model="x", probes=("sing",)),
            "no probe is called 'sing'; known are: text",
        ),
        (LiveOptions(replay=Path("no-such-folder")), "is no folder"),
    ],
)
def test_options_that_are_none_are_told(options: LiveOptions, said: str) -> None:
    with pytest.raises(BadInput, match=re.escape(said)):
        check_live(options)


def test_a_folder_without_a_recording_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no recording"):
        check_live(LiveOptions(replay=tmp_path))
    (tmp_path / "run.json").write_text('{"format": 99}')
    with pytest.raises(BadInput, match="has format 99; this version reads 1"):
        check_live(LiveOptions(replay=tmp_path))
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(BadInput, match="cannot be read"):
        check_live(LiveOptions(replay=tmp_path))


async def test_no_model_and_no_list_of_models() -> None:
    with pytest.raises(ProviderError, match="no model is named"):
        await run(["text"], whole=page, model="")


WIRE = Path(__file__).parents[3] / "shared" / "corpus" / "wire"


@pytest.mark.skipif(not WIRE.is_dir(), reason="the corpus of recordings is not beside the checkout")
@pytest.mark.parametrize("folder", ["llamacpp", "vllm", "llmock_faults"])
def test_a_folder_of_other_recordings_is_judged(folder: str) -> None:
    report = check_live(LiveOptions(replay=WIRE / folder))
    assert report.subject.kind == "recording"
    assert {run.case for run in report.runs} == {
        path.name.removesuffix(".meta.json") for path in (WIRE / folder).glob("*.meta.json")
    }
    chat = [run for run in report.runs if run.layer is Layer.EVENTS and not run.case.startswith("resp_")]
    assert [str(one) for run in chat for one in run.findings if one.level is Level.MUST] == []
    assert codes(report, Layer.CHUNKS)
