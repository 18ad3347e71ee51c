"""`@rule`: what a rule is, what it rests on, and the registry of all of them.

A rule is a decorated generator over a `Trace` of events, or over an `AnswerTrace`, what a server answered. Its
docstring is the rule, in one sentence; the decorator has its number, name, strength, age and evidence. What it yields
becomes a `Finding`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from inspect import getdoc
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from .report import Finding, Level

if TYPE_CHECKING:
    from .walk import Breach, Item

__all__ = ["AnswerNeed", "Client", "Found", "Level", "Need", "Recording", "Rule", "RuleError", "Schema", "Source"]

_CODE = re.compile(r"[A-Z]{3}[0-9]{3}")


class RuleError(ValueError):
    """A rule cannot be registered, and the message says what it lacks."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The real API did so. `path` is the place of the stream in the corpus of recordings."""

    path: str

    def __str__(self) -> str:
        return f"recording {self.path}"


@dataclass(frozen=True, slots=True)
class Client:
    """A client breaks otherwise; `place` says where and how."""

    name: str
    place: str

    def __str__(self) -> str:
        return f"client {self.name}: {self.place}"


@dataclass(frozen=True, slots=True)
class Schema:
    """The published description says so."""

    place: str

    def __str__(self) -> str:
        return f"schema {self.place}"


Source: TypeAlias = Recording | Client | Schema


def recording(path: str) -> Recording:
    """Return the source: a stream in the corpus, by its path under `responses/` or `chat/`."""
    return Recording(path)


def client(name: str, place: str) -> Client:
    """Return the source: a client that breaks otherwise, and where."""
    return Client(name, place)


def schema(place: str) -> Schema:
    """Return the source: a place in the published description."""
    return Schema(place)


class Need(Enum):
    """What a rule needs beside the events. Without it the rule is not applicable. The value says what is missing."""

    CHUNKS = "no chunks were given"
    REQUEST = "no request was given"
    NUMBERS = "no event has a sequence_number"
    OPEN_RESPONSES = "the package openresponses-types is not installed"


class AnswerNeed(Enum):
    """What a rule about answers looks at. Without it the rule is not applicable. The value says what is missing."""

    CHAT = "it is no answer of a chat backend"
    RESPONSES = "it is no answer of a Responses server"
    STREAM = "no stream was asked for"
    CHUNKS = "no chunk came"
    WHOLE = "the stream did not come to its end"
    REFUSAL = "no error came before the stream"
    TWIN = "the same was not asked without a stream"
    BESIDE = "nothing else was asked at the same time"
    AFTER = "nothing was asked afterwards"


# What a rule looks at: the events, what a server answered, or what is wrong with a case of the suite.
About: TypeAlias = Literal["events", "answers", "cases"]


class Found(NamedTuple):
    """What a rule yields: where, and what is wrong. `level` softens the rule's own level for known exceptions."""

    at: int | None
    message: str
    level: Level | None = None


# Of a `Trace`, of its `Items`, of an `AnswerTrace`, or of what is wrong with a case: `Rule.about` says which.
Body: TypeAlias = Callable[[Any], Iterator[Found]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One numbered rule. `alone` is whether it judges each item of the events alone, so that it takes some at a time."""

    code: str
    name: str
    level: Level
    since: str
    sources: tuple[Source, ...]
    text: str
    body: Body
    needs: tuple[Need | AnswerNeed, ...] = ()
    broken_by: tuple[Recording, ...] = ()
    about: About = "events"
    alone: bool = False

    @property
    def area(self) -> str:
        """The three letters before the number."""
        return self.code[:3]

    @property
    def why(self) -> str:
        """What a reader is told first: a client that breaks, else a recording, else the schema."""
        order = (Client, Recording, Schema)
        return str(min(self.sources, key=lambda source: order.index(type(source))))

    def apply(self, trace: Any) -> list[Finding]:
        """Return what this rule finds, in the order found."""
        return [Finding(self.code, found.level or self.level, found.at, found.message) for found in self.body(trace)]


_RULES: dict[str, Rule] = {}


def rule(
    code: str,
    name: str,
    level: Level,
    *,
    since: str,
    sources: Iterable[Source],
    needs: Iterable[Need | AnswerNeed] = (),
    broken_by: Iterable[Recording] = (),
    about: About = "events",
    alone: bool = False,
) -> Callable[[Body], Body]:
    """Return the decorator that registers a generator as a rule. `broken_by` are recordings that break it;
    `alone` rules are given `Items`, the other rules about events the whole `Trace`.

    Raises RuleError for a code or name that is taken or ill-formed, a rule without text or source, and a rule that
    is MUST by the schema alone.
    """
    evidence = tuple(sources)

    def register(body: Body) -> Body:
        text = " ".join((getdoc(body) or "").split())
        made = Rule(code, name, level, since, evidence, text, body, tuple(needs), tuple(broken_by), about, alone)
        _refuse(made)
        _RULES[code] = made
        return body

    return register


def _refuse(made: Rule) -> None:
    """Raise RuleError where `made` lacks something, or is one that exists."""
    if not _CODE.fullmatch(made.code):
        raise RuleError(f"{made.code!r} is not a code: three capital letters and three digits, such as ITM001")
    if made.code in _RULES or any(made.name == other.name for other in _RULES.values()):
        raise RuleError(f"{made.code} {made.name}: code or name is taken")
    if not made.text:
        raise RuleError(f"{made.code} has no text: the docstring is the rule, in one sentence")
    if not made.sources:
        raise RuleError(f"{made.code} has no source")
    if made.level is Level.MUST and all(isinstance(source, Schema) for source in made.sources):
        raise RuleError(f"{made.code} rests on the schema alone, so it is at most SHOULD")


def every_rule() -> tuple[Rule, ...]:
    """Return all rules, whatever they are about, by code."""
    from . import rules as _  # noqa: F401 -- the modules register what they declare

    return tuple(_RULES[code] for code in sorted(_RULES))


def all_rules() -> tuple[Rule, ...]:
    """Return all rules about events, by code: those that `check` applies."""
    return tuple(one for one in every_rule() if one.about == "events")


def answer_rules() -> tuple[Rule, ...]:
    """Return all rules about what a server answers, by code: those that `check_answer` applies."""
    return tuple(one for one in every_rule() if one.about == "answers")


def find(wanted: str) -> Rule | None:
    """Return the rule of that code or name, in any case of letters, or None."""
    key = wanted.strip().casefold()
    return next((one for one in every_rule() if key in (one.code.casefold(), one.name.casefold())), None)


def as_found(breaches: Iterable[Breach]) -> Iterator[Found]:
    """Yield breaches of the tables as one finding."""
    return folded(Found(breach.at, breach.message) for breach in breaches)


def folded_by_item(found: Iterable[tuple[Item, Found]]) -> Iterator[Found]:
    """Yield what is `folded` of each item, in order of their first ones."""
    by_item: dict[int, list[Found]] = {}
    for item, one in found:
        by_item.setdefault(id(item), []).append(one)
    for several in by_item.values():
        yield from folded(several)


def folded(found: Iterable[Found], like: str = "more like it") -> Iterator[Found]:
    """Yield the first of `found`, which says how many more there are: one cause is one finding."""
    several = list(found)
    if several:
        more = f" ({len(several) - 1} {like})" if len(several) > 1 else ""
        yield several[0]._replace(message=several[0].message + more)
