"""Ids of responses, items and calls: random, or counted for tests and reproducible conversion."""

from __future__ import annotations

import os
from collections import Counter
from typing import Literal, Protocol, TypeAlias

from .errors import BadInput

Prefix: TypeAlias = Literal["resp_", "msg_", "rs_", "fc_", "ctc_", "call_"]


class Ids(Protocol):
    """Where ids come from."""

    def make(self, prefix: Prefix) -> str:
        """Return an id that begins with `prefix` and was not returned before."""
        ...


class RandomIds:
    """Ids that are unique over responses, processes and machines: 24 random bytes in hex, as long as OpenAI's."""

    def make(self, prefix: Prefix) -> str:
        return prefix + os.urandom(24).hex()


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
        return RandomIds()
    if choice == "counted":
        return CountedIds()
    if isinstance(choice, str):
        raise BadInput(f'ids={choice!r}: it is "random", "counted" or an object with make(prefix)')
    return choice
