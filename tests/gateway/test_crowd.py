"""Many who want the store at the same time, and a loop that is busy with streams: all is written, soon, and told apart."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.gateway.config import StoreConfig
from antiphon.gateway.errors import StoreUnavailable
from antiphon.gateway.store import Conversation, Store
from antiphon.gateway.stored import Stored
from antiphon.gateway.together import Together

from .asking import Json, asked, asking, events_in, judged


def stored(name: str, **more: str) -> Stored:
    item = {"id": f"msg_{name}", "type": "message"}
    return Stored({"id": name, "created_at": int(1.7e9), "status": "completed", "output": [item]}, [], **more)


# --- rounds --------------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 7), st.integers(0, 10))
def test_all_is_done_once_in_order_and_faults_are_told_to_those_whose_they_are(
    values: list[int], most: int, bad: int
) -> None:
    """One that does not fit keeps nothing else from being done."""
    rounds: list[list[tuple[int, int]]] = []

    async def act(some: Sequence[tuple[int, int]]) -> None:
        await asyncio.sleep(0)
        if any(value == bad for _, value in some):
            raise StoreUnavailable("it does not fit")
        rounds.append([*some])

    async def ask() -> list[BaseException | None]:
        together = Together(act, most, alone=True)
        return await asyncio.gather(*(together.done(one) for one in enumerate(values)), return_exceptions=True)

    answers = asyncio.run(ask())
    good = [(at, value) for at, value in enumerate(values) if value != bad]
    assert [one for some in rounds for one in some] == good
    assert all(len(some) <= most for some in rounds)
    assert [isinstance(one, StoreUnavailable) for one in answers] == [value == bad for value in values]


@pytest.mark.parametrize(
    ("problem", "tried"),
    [
        (StoreUnavailable("late", is_late=True), [[0, 1]]),
        (StoreUnavailable("away"), [[0, 1], [2, 3], [4]]),
        (ValueError("a fault of ours"), [[0, 1], [2, 3], [4]]),
    ],
    ids=["late", "away", "fault"],
)
async def test_a_round_that_fails_is_told_to_all_in_it(problem: Exception, tried: list[list[int]]) -> None:
    """Where it took too long, those who wait for the next one have waited long enough, too; whoever comes later is not."""
    rounds: list[list[int]] = []

    async def act(some: Sequence[int]) -> None:
        rounds.append([*some])
        await asyncio.sleep(0)
        if 9 not in some:
            raise problem

    together = Together(act, 2, alone=False)
    answers = await asyncio.gather(*(together.done(at) for at in range(5)), return_exceptions=True)
    await together.done(9)
    assert answers == [problem] * 5
    assert rounds == [*tried, [9]]


async def test_who_is_cancelled_takes_nobody_with_it() -> None:
    done: list[int] = []

    async def act(some: Sequence[int]) -> None:
        await asyncio.sleep(0.01)
        done.extend(some)

    together = Together(act, 10, alone=True)
    tasks = [asyncio.create_task(together.done(at)) for at in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.wait(tasks)
    assert (done, [one.cancelled() for one in tasks]) == ([0, 1, 2], [False, True, False])


# --- the store -----------------------------------------------------------------------------------------------------------


async def test_many_are_kept_at_once(url: str) -> None:
    """Responses alone, on each other, and of conversations, each of its owner, as if they came one after the other."""
    store = Store(StoreConfig(url=url))
    try:
        await store.begin_conversation(Conversation("conv_crowd", 1, {}), [], "anne")
        await store.put(stored("resp_first"), "anne")
        some = [stored(f"resp_{at}") for at in range(120)]
        on = [stored(f"resp_on_{at}", previous_id="resp_first") for at in range(20)]
        talk = [stored(f"resp_talk_{at}", conversation_id="conv_crowd") for at in range(20)]
        gone = stored("resp_gone", conversation_id="conv_none")
        await asyncio.gather(*(store.put(one, "anne") for one in (*some, *on, *talk, gone)))
        await asyncio.gather(*(store.put(stored(f"resp_bob_{at}"), "bob") for at in range(3)))
        found = [await store.get(one.id, "anne") for one in (*some, *on, *talk, gone)]
        others = [await store.get(one.id, "bob") for one in some[:3]]
        chains = [await store.chain(one.id, "anne", 10) for one in on]
        items = await store.conversation_items("conv_crowd", "anne", 100)
        referred = await store.items(["msg_resp_7", "msg_resp_gone", "msg_resp_bob_1"], "anne")
    finally:
        await store.aclose()
    assert [one and one.id for one in found] == [one.id for one in (*some, *on, *talk, gone)]
    assert others == [None] * 3
    assert [[one.id for one in chain or ()] for chain in chains] == [["resp_first", one.id] for one in on]
    assert sorted(item["id"] for item in items or ()) == sorted(f"msg_{one.id}" for one in talk)
    assert set(referred) == {"msg_resp_7", "msg_resp_gone"}


async def test_one_that_cannot_be_kept_keeps_no_other_from_it(url: str) -> None:
    store = Store(StoreConfig(url=url))
    try:
        await store.put(stored("resp_own_2"), "anne")
        puts = [store.put(stored(f"resp_own_{at}"), "anne") for at in range(5)]
        told = await asyncio.gather(*puts, return_exceptions=True)  # the third has the id of one that is there
        found = [await store.get(f"resp_own_{at}", "anne") for at in range(5)]
    finally:
        await store.aclose()
    assert [type(one) for one in told] == [type(None), type(None), StoreUnavailable, type(None), type(None)]
    assert None not in found


def until_there(path: Path, name: str) -> bool:
    """Return whether a response comes to be in the database, while nothing else of this process's loop goes on."""
    for _ in range(1000):
        with closing(sqlite3.connect(path)) as connection:
            if connection.execute("SELECT 1 FROM antiphon_responses WHERE id = ?", (name,)).fetchall():
                return True
        time.sleep(0.01)
    return False


async def test_a_loop_that_is_busy_holds_up_no_transaction(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = Store(StoreConfig(url=f"sqlite:///{path}", timeout=60))
    try:
        await store.ready()
        task = asyncio.create_task(store.put(stored("resp_1"), ""))
        await asyncio.sleep(0)
        written = until_there(path, "resp_1")
        was_done = task.done()
        await task
    finally:
        await store.aclose()
    assert (written, was_done) == (True, False)


async def test_a_store_that_was_closed_can_be_used_again(tmp_path: Path) -> None:
    store = Store(StoreConfig(url=f"sqlite:///{tmp_path / 'a.db'}"))
    await store.aclose()
    for at in range(3):
        await store.put(stored(f"resp_{at}"), "")
        await store.aclose()
        await store.aclose()
    found = [await store.get(f"resp_{at}", "") for at in range(3)]
    await store.aclose()
    assert None not in found


@pytest.mark.parametrize("stream", [True, False])
async def test_a_crowd_is_stored_whole(stream: bool, url: str) -> None:
    """What all of them were told is there, and can be gone on from."""
    async with asking({"store": {"url": url}}) as client:
        asked_all = [asked(client, "echo", input=f"number {at}", stream=stream) for at in range(150)]
        answers = await asyncio.gather(*asked_all)
        made: list[Json] = [judged(events_in(one.content))[-1]["response"] if stream else one.json() for one in answers]
        again = await asyncio.gather(
            *(asked(client, "echo", previous_response_id=one["id"], input="and") for one in made[:50])
        )
        found = [(await client.get(f"/v1/responses/{one['id']}")).json() for one in made]
    assert [one["store"] for one in made] == [True] * 150
    assert found == made
    assert [one.status_code for one in again] == [200] * 50
    assert all(one.json()["store"] for one in again)
