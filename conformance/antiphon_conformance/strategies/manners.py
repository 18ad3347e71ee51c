"""How a conversation may be sent: `Manner`, and the oddities of providers by their names.

A manner must never change what comes out: it keeps to what the grammar lets a provider do. Each oddity was seen in
recordings of some provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Manner:
    """How a conversation is sent. The defaults are those of a plain provider; `seed` decides where it cuts."""

    seed: int = 0
    piece: int = 1000  # the longest piece, in characters
    interleave: bool = False
    indexes: Literal["own", "from 1", "none", "all 0"] = "own"
    again: Literal["index", "id", "both", "empties"] = "index"  # what later fragments of a call carry
    head: Literal["whole", "name later", "arguments first", "name in pieces"] = "whole"
    legacy: bool = False  # `function_call`, where there is one call
    fields: tuple[str, ...] = ("reasoning_content",)
    usage_at: Literal["end", "finish", "first", "every"] = "end"
    noise: bool = False  # chunks that say nothing
    together: bool = False  # several things in one chunk
    finish_with_last: bool = False


# name of an oddity -> what it changes in a manner
ODDITIES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "single characters": {"piece": 1},
        "small pieces": {"piece": 4},
        "interleaved calls": {"interleave": True},
        "indexes from 1": {"indexes": "from 1"},
        "no indexes": {"indexes": "none"},
        "all indexes 0": {"indexes": "all 0"},
        "id instead of index": {"again": "id"},
        "id again": {"again": "both"},
        "empty id and name again": {"again": "empties"},
        "name later": {"head": "name later"},
        "arguments before the name": {"head": "arguments first"},
        "name in pieces": {"head": "name in pieces"},
        "function_call": {"legacy": True},
        "reasoning field": {"fields": ("reasoning",)},
        "both reasoning fields": {"fields": ("reasoning_content", "reasoning")},
        "usage first": {"usage_at": "first"},
        "usage with the finish": {"usage_at": "finish"},
        "usage everywhere": {"usage_at": "every"},
        "chunks that say nothing": {"noise": True},
        "several things in a chunk": {"together": True},
        "finish with the last piece": {"finish_with_last": True},
    }
)


def manner_of(*oddities: str, seed: int = 0) -> Manner:
    """Return the manner that has these oddities; of two that exclude each other, the later one.

    >>> manner_of("name later", "usage first").usage_at
    'first'
    """
    changes = {key: value for name in oddities for key, value in ODDITIES[name].items()}
    return replace(Manner(seed=seed), **changes)
