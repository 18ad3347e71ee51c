"""Sessions: the same behaviour in SQLite files, through SQLAlchemy and in PostgreSQL; nothing torn, nothing half."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.exceptions import UserError
from antiphon.memory import Session, SessionABC, SessionSettings, SQLiteSession
from antiphon.memory.compaction import HEADING, CompactionSession, cut
from antiphon.memory.openai_compaction import OpenAIResponsesCompactionSession
from antiphon.run.agent import Agent
from antiphon.run.runner import Runner
from antiphon.run.session import paired
from antiphon.testing import ScriptedModel, assistant_message, function_call
from antiphon.tool import function_tool

from . import postgres

sqlalchemy = pytest.importorskip("sqlalchemy")
pytest.importorskip("aiosqlite")

from sqlalchemy.ext.asyncio import create_async_engine  # noqa: E402  # after it is known to be there

from antiphon.memory import SQLAlchemySession  # noqa: E402  # as above

MAKERS = ["sqlite", "memory", "sqlalchemy", "asyncpg", "psycopg"]


@pytest.fixture(scope="session")
def socket_folder() -> Generator[Path]:
    reason = postgres.missing()
    if reason:
        pytest.skip(reason)
    with postgres.server() as folder:
        yield folder


class Store:
    """One place where sessions are kept; `open` makes a session in it."""

    def __init__(self, make: Callable[[str, dict[str, Any]], Any]) -> None:
        self.make = make
        self.opened: list[Any] = []

    def open(self, session_id: str, **options: Any) -> Any:
        self.opened.append(self.make(session_id, options))
        return self.opened[-1]

    async def close(self) -> None:
        for one in self.opened:
            done = one.close()
            if done is not None:
                await done


def _maker(kind: str, folder: Path, socket: Path | None) -> Callable[[str, dict[str, Any]], Any]:
    if kind == "sqlite":
        return lambda name, options: SQLiteSession(name, folder / "s.db", **options)
    if kind == "memory":
        return lambda name, options: SQLiteSession(name, **options)
    if kind == "sqlalchemy":
        return lambda name, options: SQLAlchemySession(name, url=f"sqlite+aiosqlite:///{folder}/a.db", **options)
    pytest.importorskip(kind)
    own = uuid4().hex
    tables = {"sessions_table": f"s_{own}", "messages_table": f"m_{own}"}
    url = f"postgresql+{kind}://postgres@/postgres?host={socket}"
    return lambda name, options: SQLAlchemySession(name, url=url, **tables, **options)


@pytest.fixture(params=MAKERS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    socket = request.getfixturevalue("socket_folder") if request.param in ("asyncpg", "psycopg") else None
    made = Store(_maker(request.param, tmp_path, socket))
    yield made
    await made.close()


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def items(count: int, prefix: str = "t") -> list[Any]:
    return [user(f"{prefix}{number}") for number in range(count)]


def call(name: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": name, "name": "f", "arguments": "{}"}


def output(name: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": name, "output": "o"}


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


# --- every kind of session -------------------------------------------------------------------------------------------


async def test_items_come_back_in_order(store: Store) -> None:
    session = store.open("a")
    first, second = [user("é\u2028\U0001f600 \x00"), call("1")], [output("1"), said("ok")]
    assert await session.get_items() == []
    await session.add_items(first)
    await session.add_items([])
    await session.add_items(second)
    assert await session.get_items() == [*first, *second]
    assert isinstance(session, Session)
    assert isinstance(session, SessionABC)


@pytest.mark.parametrize(
    ("limit", "settings", "count"),
    [(None, None, 5), (2, None, 2), (0, None, 0), (9, None, 5), (None, {"limit": 3}, 3), (1, SessionSettings(3), 1)],
)
async def test_a_limit_gives_the_latest(store: Store, limit: int | None, settings: Any, count: int) -> None:
    session = store.open("a", session_settings=settings)
    await session.add_items(items(5))
    assert await session.get_items(limit=limit) == items(5)[5 - count :]
    with pytest.raises(UserError, match="0 or more"):
        await session.get_items(limit=-1)


async def test_pop_and_clear(store: Store) -> None:
    session = store.open("a")
    await session.add_items(items(3))
    popped = [await session.pop_item(), await session.pop_item()]
    assert (popped, await session.get_items()) == ([user("t2"), user("t1")], items(1))
    await session.clear_session()
    assert (await session.get_items(), await session.pop_item()) == ([], None)
    await session.add_items(items(1, "again"))
    assert await session.get_items() == items(1, "again")


@pytest.mark.parametrize("kind", ["sqlite", "sqlalchemy", "asyncpg", "psycopg"])
async def test_sessions_of_one_place_do_not_see_each_other(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    socket = request.getfixturevalue("socket_folder") if kind in ("asyncpg", "psycopg") else None
    store = Store(_maker(kind, tmp_path, socket))
    one, other, again = store.open("a"), store.open("b"), store.open("a")
    await asyncio.gather(one.add_items(items(2, "a")), other.add_items(items(3, "b")))
    await other.clear_session()
    assert (await again.get_items(), await other.get_items()) == (items(2, "a"), [])
    await store.close()


async def test_writers_of_one_session_wait_for_each_other(store: Store) -> None:
    session = store.open("a")
    writers = [session] if session.__class__ is SQLiteSession and session.db_path == ":memory:" else []
    writers = writers or [session, store.open("a"), store.open("a")]
    batches = [items(3, f"w{number}-") for number in range(12)]
    await asyncio.gather(*(writers[n % len(writers)].add_items(batch) for n, batch in enumerate(batches)))
    found = await session.get_items()
    whole = [found[start : start + 3] for start in range(0, len(found), 3)]
    assert sorted(whole, key=str) == sorted(batches, key=str)


async def test_what_replaces_the_oldest_leaves_what_came_meanwhile(store: Store) -> None:
    session = store.open("a")
    await session.add_items(items(5))
    before = await session.get_items()
    await session.add_items(items(1, "meanwhile"))
    assert await session.replace_oldest(before[:3], [user("short")])
    assert await session.get_items() == [user("short"), *before[3:], user("meanwhile0")]
    assert not await session.replace_oldest(before[:3], [user("late")])
    assert await session.get_items() == [user("short"), *before[3:], user("meanwhile0")]


@pytest.mark.parametrize("size", [1, 200])
async def test_who_is_cancelled_leaves_all_or_nothing(store: Store, size: int) -> None:
    session = store.open("a")
    await session.add_items(items(1))
    task = asyncio.create_task(session.add_items(items(size, "x")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await session.get_items() in (items(1), [*items(1), *items(size, "x")])


# --- SQLite files ----------------------------------------------------------------------------------------------------


def _spoil(path: Path, table: str, texts: list[str]) -> None:
    connection = sqlite3.connect(path)
    connection.executemany(
        f"INSERT INTO {table} (session_id, message_data) VALUES ('a', ?)", [(text,) for text in texts]
    )
    connection.commit()
    connection.close()


async def test_spoilt_rows_are_left_out(tmp_path: Path) -> None:
    stores = [
        (SQLiteSession("a", tmp_path / "s.db"), tmp_path / "s.db"),
        (SQLAlchemySession("a", url=f"sqlite+aiosqlite:///{tmp_path}/a.db"), tmp_path / "a.db"),
    ]
    for session, path in stores:
        await session.add_items(items(2))
        _spoil(path, "agent_messages", ["{", "[]", "3"])
        assert await session.get_items(limit=1) == [user("t1")]
        await session.add_items(items(1, "late"))
        _spoil(path, "agent_messages", ["null"])
        popped = [await session.pop_item(), await session.pop_item()]
        assert (popped, await session.get_items()) == ([user("late0"), user("t1")], items(1))
        closing = session.close()
        if closing is not None:
            await closing


async def test_the_tables_of_the_other_sdk_are_read(tmp_path: Path) -> None:
    agents = pytest.importorskip("agents")
    theirs = agents.SQLiteSession("a", tmp_path / "s.db")
    await theirs.add_items(items(2))
    theirs.close()
    ours = SQLiteSession("a", tmp_path / "s.db")
    await ours.add_items([said("ok")])
    assert await ours.get_items() == [*items(2), said("ok")]
    ours.close()
    again = agents.SQLiteSession("a", tmp_path / "s.db")
    assert await again.get_items() == [*items(2), said("ok")]
    again.close()


async def test_tables_may_have_any_name(tmp_path: Path) -> None:
    session = SQLiteSession("a", tmp_path / "s.db", sessions_table='my "s"', messages_table="select")
    await session.add_items(items(1))
    assert await session.get_items() == items(1)
    session.close()
    with pytest.raises(UserError, match="closed"):
        await session.get_items()
    with pytest.raises(UserError, match="not empty"):
        SQLiteSession("a", messages_table="")
    with pytest.raises(UserError, match="its folder must be there"):
        await SQLiteSession("a", tmp_path / "none" / "s.db").get_items()


def test_many_threads_with_loops_of_their_own(tmp_path: Path) -> None:
    path, failures = tmp_path / "s.db", list[BaseException]()
    shared = SQLiteSession("a", path)

    def write(number: int) -> None:
        session = shared if number % 2 else SQLiteSession("a", path)
        try:
            asyncio.run(session.add_items(items(3, f"w{number}-")))
        except (sqlite3.Error, OSError, UserError) as error:
            failures.append(error)
        if session is not shared:
            session.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = asyncio.run(shared.get_items())
    shared.close()
    assert (failures, len(found)) == ([], 24)


WRITER = """
import asyncio, sys
from antiphon.memory import SQLiteSession
async def main():
    session = SQLiteSession("a", sys.argv[1])
    print("ready", flush=True)
    for number in range(2000):
        await session.add_items([{"role": "user", "content": f"{number}.{part}"} for part in range(3)])
asyncio.run(main())
"""


async def test_a_killed_writer_leaves_no_half_turn(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    reader = SQLiteSession("a", path)
    for _ in range(4):
        writer = await asyncio.create_subprocess_exec(sys.executable, "-c", WRITER, str(path), stdout=subprocess.PIPE)
        assert writer.stdout is not None
        await writer.stdout.readline()
        before = len(await reader.get_items())
        for _ in range(100_000):
            if len(await reader.get_items()) >= before + 9 or writer.returncode is not None:
                break
        writer.kill()
        await writer.wait()
        found = [item["content"] for item in await reader.get_items()]
        assert len(found) >= before + 9
        assert found == [f"{text.split('.')[0]}.{number % 3}" for number, text in enumerate(found)]
    reader.close()


# --- SQLAlchemy ------------------------------------------------------------------------------------------------------


async def test_an_engine_is_its_owners(tmp_path: Path) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/a.db")
    session = SQLAlchemySession("a", engine=engine)
    await session.add_items(items(1))
    await session.close()
    assert await SQLAlchemySession("a", engine=engine, create_tables=False).get_items() == items(1)
    await engine.dispose()
    with pytest.raises(UserError, match="not both"):
        SQLAlchemySession("a", url="sqlite+aiosqlite://", engine=engine)


async def test_tables_are_not_made_where_that_is_not_wanted(tmp_path: Path) -> None:
    session = SQLAlchemySession.from_url("a", url=f"sqlite+aiosqlite:///{tmp_path}/a.db", create_tables=False)
    with pytest.raises(sqlalchemy.exc.OperationalError, match="no such table"):
        await session.get_items()
    await session.close()


POSTGRES_WRITER = """
import asyncio, sys
from antiphon.memory import SQLAlchemySession
async def main():
    session = SQLAlchemySession("a", url=sys.argv[1], sessions_table="s_many", messages_table="m_many")
    for number in range(10):
        await session.add_items([{"role": "user", "content": f"{sys.argv[2]}.{number}.{part}"} for part in range(3)])
    await session.close()
asyncio.run(main())
"""


async def test_many_processes_write_one_session(socket_folder: Path) -> None:
    pytest.importorskip("asyncpg")
    url = f"postgresql+asyncpg://postgres@/postgres?host={socket_folder}"
    writers = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", POSTGRES_WRITER, url, str(number))
        for number in range(3)
    ]
    assert [await writer.wait() for writer in writers] == [0, 0, 0]
    session = SQLAlchemySession("a", url=url, sessions_table="s_many", messages_table="m_many")
    found = [item["content"] for item in await session.get_items()]
    await session.close()
    turns = [found[start : start + 3] for start in range(0, len(found), 3)]
    whole = [[f"{writer}.{number}.{part}" for part in range(3)] for writer in range(3) for number in range(10)]
    assert sorted(turns) == whole


STEP = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 3)),
    st.tuples(st.sampled_from(["pop", "clear"]), st.just(0)),
    st.tuples(st.just("get"), st.none() | st.integers(0, 4)),
    st.tuples(st.just("replace"), st.integers(0, 3)),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(STEP, max_size=12))
def test_a_session_is_a_list(steps: list[tuple[str, Any]]) -> None:
    asyncio.run(_as_a_list(steps))


async def _as_a_list(steps: list[tuple[str, Any]]) -> None:
    session, held = SQLiteSession("a"), list[Any]()
    for number, (step, count) in enumerate(steps):
        match step:
            case "add":
                added = items(count, f"s{number}-")
                await session.add_items(added)
                held = [*held, *added]
            case "pop":
                assert await session.pop_item() == (held.pop() if held else None)
            case "clear":
                await session.clear_session()
                held = []
            case "replace":
                done = await session.replace_oldest(held[:count], [user(f"s{number}")])
                assert done
                held = [user(f"s{number}"), *held[count:]]
            case _:
                latest = held if count is None else held[len(held) - min(count, len(held)) :]
                assert await session.get_items(count) == latest
    assert await session.get_items() == held
    session.close()


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "override", "limit"),
    [(None, None, None), (3, None, 3), (3, SessionSettings(5), 5), (3, {"limit": 5}, 5), (3, SessionSettings(), 3)],
)
def test_settings(base: int | None, override: Any, limit: int | None) -> None:
    assert SessionSettings(base).resolve(override).to_dict() == {"limit": limit}


@pytest.mark.parametrize("settings", [{"limit": -1}, {"limit": "3"}, {"limit": True}, {"other": 1}])
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        SQLiteSession("a", session_settings=settings)


# --- compaction ------------------------------------------------------------------------------------------------------

THOUGHT = {"type": "reasoning", "id": "rs", "summary": []}
TURNS = [user("q"), THOUGHT, call("1"), call("2"), output("1"), output("2"), said("a"), user("r"), call("3"), output("3")]  # fmt: skip
CUTS: list[tuple[list[Any], int, int]] = [
    (TURNS, 0, 10),
    (TURNS, 1, 8),
    (TURNS, 3, 7),
    (TURNS, 4, 6),
    (TURNS, 5, 1),
    (TURNS, 9, 1),
    (TURNS, 10, 0),
    (TURNS, 99, 0),
    ([call("open"), user("a"), user("b")], 1, 0),
    ([user("a"), call("open"), user("b"), user("c")], 0, 1),
]


@pytest.mark.parametrize(("history", "keep", "place"), CUTS)
def test_where_a_history_is_cut(history: list[Any], keep: int, place: int) -> None:
    assert cut(history, keep) == place


ENTRY = st.sampled_from([user("q"), said("a"), THOUGHT]) | st.builds(call, st.sampled_from("123"))


@settings(deadline=None)
@given(st.lists(ENTRY | st.builds(output, st.sampled_from("123")), max_size=14), st.integers(0, 8))
def test_no_cut_parts_a_pair(entries: list[dict[str, Any]], keep: int) -> None:
    known, history = set[str](), list[Any]()
    for entry in entries:  # as a run writes it: an output after its call, each id once
        key = f"{entry.get('type')}-{entry.get('call_id')}"
        answers = entry.get("type") == "function_call_output"
        if "call_id" in entry and (key in known or (answers and f"function_call-{entry['call_id']}" not in known)):
            continue
        known.add(key)
        history.append(entry)
    history = paired(history)
    place = cut(history, keep)
    gone, kept = history[:place], history[place:]
    assert len(kept) >= min(keep, len(history))
    assert (paired(gone), paired(kept)) == (gone, kept)


class Bare:
    """A session of the bare protocol. `fails`: what it cannot do: "add" a summary, or "half" of it, or "clear" itself."""

    def __init__(self, fails: str = "") -> None:
        self.session_id, self.session_settings, self.held, self.fails = "a", SessionSettings(2), list[Any](), fails

    async def get_items(self, limit: int | None = None) -> list[Any]:
        most = 2 if limit is None else limit
        return self.held[-most:]

    async def add_items(self, items: list[Any]) -> None:
        if self.fails in ("add", "half") and any(HEADING.strip() in str(item) for item in items):
            self.held.extend(items[:1] if self.fails == "half" else [])
            raise OSError("full")
        self.held.extend(items)

    async def pop_item(self) -> Any | None:
        return self.held.pop() if self.held else None

    async def clear_session(self) -> None:
        self.held.clear()
        if self.fails == "clear":
            self.fails = ""
            raise OSError("gone")


@pytest.fixture(params=["sqlite", "sqlalchemy", "bare"])
async def inner(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    if request.param == "bare":
        yield Bare()
    else:
        store = Store(_maker(request.param, tmp_path, None))
        yield store.open("a")
        await store.close()


async def test_the_oldest_items_become_a_summary(inner: Any) -> None:
    model = ScriptedModel([[assistant_message(" They talked. ")]])
    session = CompactionSession(inner, model, max_items=8, keep_items=3)
    await session.add_items(TURNS[:1])
    await session.add_items(TURNS[1:7])
    await session.add_items(TURNS[7:8])
    assert model.calls == ()
    await session.add_items(TURNS[8:])
    assert await session.get_items(99) == [user(f"{HEADING}They talked."), *TURNS[7:]]
    (asked,) = model.calls
    assert asked.tools == []
    assert asked.input == [user("\n".join(f"{n}. {line}" for n, line in enumerate(LINES, 1)))]
    assert session.usage.requests == 1
    assert [await session.pop_item(), await session.get_items(1)] == [TURNS[-1], [TURNS[-2]]]
    await session.clear_session()
    assert await session.get_items() == []


LINES = ["user: q", *(json.dumps(item) for item in TURNS[1:7])]
UNSUMMED: list[tuple[str, Any]] = [
    ("error", RuntimeError("down")),
    ("nothing said", [assistant_message(" ")]),
]


@pytest.mark.parametrize(("name", "step"), UNSUMMED, ids=[one[0] for one in UNSUMMED])
async def test_without_a_summary_all_stays(name: str, step: Any, inner: Any, caplog: pytest.LogCaptureFixture) -> None:
    session = CompactionSession(inner, ScriptedModel([step]), max_items=4, keep_items=1)
    await session.add_items(TURNS)
    assert await session.get_items(99) == TURNS
    assert "is not shortened" in caplog.text


@pytest.mark.parametrize("fails", ["add", "half", "clear"])
async def test_a_session_that_cannot_keep_the_summary_gets_its_items_back(fails: str) -> None:
    bare = Bare(fails)
    session = CompactionSession(bare, ScriptedModel([[assistant_message("short")]]), max_items=4, keep_items=1)
    await session.add_items(TURNS)
    assert bare.held == TURNS


async def test_what_came_while_a_summary_was_made_stays(inner: Any) -> None:
    async def late(items: list[Any]) -> bool:
        await inner.add_items([user("late")])
        return True

    session = CompactionSession(inner, ScriptedModel([[assistant_message("short")]]), should_compact=late, keep_items=3)
    await session.add_items(TURNS)
    assert await session.get_items(99) == [user(f"{HEADING}short"), *TURNS[7:], user("late")]


async def test_what_was_cleared_while_a_summary_was_made_stays_cleared(inner: Any) -> None:
    async def cleared(items: list[Any]) -> bool:
        await inner.clear_session()
        await inner.add_items([user("new")])
        return True

    session = CompactionSession(inner, ScriptedModel([[assistant_message("short")]]), should_compact=cleared)
    await session.add_items(TURNS * 3)
    assert await session.get_items(99) == [user("new")]


async def test_compaction_can_be_forced_and_decided() -> None:
    model = ScriptedModel([[assistant_message("one")]])
    session = CompactionSession(Bare(), model, should_compact=lambda items: len(items) > 7, max_items=4, keep_items=0)
    await session.add_items(TURNS[:7])
    assert not await session.run_compaction()
    assert await session.run_compaction({"force": True})
    assert await session.get_items(99) == [user(f"{HEADING}one")]
    assert not await session.run_compaction({"force": True})
    model.assert_complete()


@pytest.mark.parametrize("streamed", [False, True])
async def test_runs_go_on_from_a_summary(streamed: bool) -> None:
    turns = [([function_call("add", '{"a": 1}', call_id=f"c{n}")], [assistant_message(f"m{n}")]) for n in range(5)]
    model = ScriptedModel([step for turn in turns for step in turn])
    summaries = ScriptedModel([[assistant_message(f"summary {n}")] for n in range(9)])
    inside = SQLiteSession("a")
    session = CompactionSession(inside, summaries, max_items=6, keep_items=2)
    agent = Agent[Any](name="a", model=model, tools=[add])
    for number in range(5):
        if streamed:
            result = Runner.run_streamed(agent, f"q{number}", session=session)
            _ = [event async for event in result.stream_events()]
        else:
            result = await Runner.run(agent, f"q{number}", session=session)
        assert result.final_output == f"m{number}"
        assert len(await session.get_items()) <= 6
    inside.close()
    asked = [list(one.input) for one in model.calls]
    assert all(paired(one) == one for one in asked)
    assert asked[-2][0]["content"].startswith(f"{HEADING}summary ")
    assert asked[-2][-1] == user("q4")


@function_tool
def add(a: int) -> int:
    return a + 1


@pytest.mark.parametrize("make", [lambda one: CompactionSession(one, max_items=1, keep_items=2), lambda one: CompactionSession(CompactionSession(one))])  # fmt: skip
def test_wrong_compaction_is_refused(make: Callable[[Any], Any]) -> None:
    with pytest.raises(UserError):
        make(Bare())


# --- OpenAI's compaction ---------------------------------------------------------------------------------------------


@asynccontextmanager
async def compacting(asked: list[Any]) -> AsyncIterator[Any]:
    """A client of a server that answers `responses.compact`, on loopback."""
    from openai import AsyncOpenAI

    output = [
        {"type": "message", "id": "m", "role": "user", "status": "completed", "content": [{"type": "input_text", "text": "q"}]},
        {"type": "compaction", "id": "cmp", "encrypted_content": "x", "created_by": "server"},
    ]  # fmt: skip
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}  # fmt: skip
    body = json.dumps({"id": "r", "created_at": 0, "object": "response.compaction", "output": output, "usage": usage})

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(next(line.split(":")[1] for line in head.splitlines() if line.startswith("content-length")))
        asked.append(json.loads(await reader.readexactly(length)))
        writer.write(
            f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="k", max_retries=0) as client:
        yield client


COMPACTED = [
    {"type": "message", "id": "m", "role": "user", "status": "completed", "content": [{"type": "input_text", "text": "q"}]},
    {"type": "compaction", "id": "cmp", "encrypted_content": "x"},
]  # fmt: skip


async def test_openai_compacts() -> None:
    asked: list[Any] = []
    async with compacting(asked) as client:
        session = OpenAIResponsesCompactionSession(
            "a", Bare(), client=client, model="gpt-x", should_trigger_compaction=_from_seven
        )
        await session.add_items(TURNS[:2])
        await session.add_items(TURNS[2:])
        assert await session.get_items(99) == COMPACTED
        assert await session.run_compaction({"force": True, "response_id": "resp_1"})
        assert await session.run_compaction({"force": True, "response_id": "resp_1", "store": False})
    assert asked == [
        {"model": "gpt-x", "input": TURNS},
        {"model": "gpt-x", "previous_response_id": "resp_1"},
        {"model": "gpt-x", "input": COMPACTED},
    ]
    with pytest.raises(UserError, match="needs a response_id"):
        await session.run_compaction({"compaction_mode": "previous_response_id"})


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("approves", [False, True])
async def test_openai_compacts_nothing_while_a_call_waits(streamed: bool, approves: bool) -> None:
    asked: list[Any] = []
    one = function_tool(lambda: "done", name_override="one", needs_approval=True)
    model = ScriptedModel([[function_call("one", {}, call_id="c")], [assistant_message("a")], [assistant_message("b")]])
    agent = Agent[Any](name="a", model=model, tools=[one])

    async def ran(given: Any) -> Any:
        if not streamed:
            return await Runner.run(agent, given, session=session)
        result = Runner.run_streamed(agent, given, session=session)
        async for _ in result.stream_events():
            pass
        return result

    async with compacting(asked) as client:
        session = OpenAIResponsesCompactionSession(
            "a", Bare(), client=client, should_trigger_compaction=lambda told: len(told["session_items"]) < 9
        )
        state = (await ran("go")).to_state()
        assert not await session.run_compaction({"force": True})
        assert asked == []
        (state.approve if approves else state.reject)(state.get_interruptions()[0])
        await ran(state)
        called = [item["type"] for item in asked[0]["input"] if item.get("call_id") == "c"]
        assert called == ["function_call", "function_call_output"]
        await ran("and?")
    assert [item.get("call_id") for item in model.last_call.input] == [None] * 3


def _from_seven(told: dict[str, Any]) -> bool:
    return len(told["compaction_candidate_items"]) >= 7 and told["compaction_mode"] == "input"
