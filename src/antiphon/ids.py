"""Ids of responses, items and calls: random, or counted for tests and reproducible conversion."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import Literal, Protocol, TypeAlias

from .errors import BadInput

Prefix: TypeAlias = Literal["resp_", "msg_", "rs_", "fc_", "ctc_", "call_"]


# In hex, how random ids begin after their prefix. A server that keeps what it said knows ids of its own alone, so a
# history must show which ids no server ever gave, also after it was stored as JSON by a client that knows no more of it.
MARK = b"anti".hex()
FAKE = "__fake_id__"  # what openai-agents 0.24 gives each item of a chat backend
_MADE = re.compile(rf"[a-z]+_{MARK}[0-9a-f]{{40}}")


def is_made(item_id: object) -> bool:
    """Return whether an id was made here, or by another converter of chat answers: no server knows it."""
    return isinstance(item_id, str) and (item_id == FAKE or _MADE.fullmatch(item_id) is not None)


class Ids(Protocol):
    """Where ids come from."""

    def make(self, prefix: Prefix) -> str:
        """Return an id that begins with `prefix` and was not returned before."""
        ...


class RandomIds:
    """Ids that are unique over responses, processes and machines: 24 random bytes in hex, as long as OpenAI's.

    For a server, which knows the ids that it gave.
    """

    def make(self, prefix: Prefix) -> str:
        return prefix + os.urandom(24).hex()


class MarkedIds:
    """Ids as unique and as long as `RandomIds`, but marked as known to no server, for `is_made`."""

    def make(self, prefix: Prefix) -> str:
        return prefix + MARK + os.urandom(20).hex()


class CountedIds:
    """Ids that are the same in each run: `msg_1`, `msg_2`, `fc_1`, … counted by kind."""

    def __init__(self) -> None:
        self._counts: Counter[Prefix] = Counter()

    def make(self, prefix: Prefix) -> str:
        self._counts[prefix] += 1
        return f"{prefix}{self._counts[prefix]}"


IdsChoice: TypeAlias = Literal["random", "counted"] | Ids


def choose_ids(choice: IdsChoice) -> Ids:
    """Return the source of ids that `choice` names. Raises BadInput for any other word."""
    if choice == "random":
        return MarkedIds()
    if choice == "counted":
        return CountedIds()
    if isinstance(choice, str):
        raise BadInput(f'ids={choice!r}: it is "random", "counted" or an object with make(prefix)')
    return choice
