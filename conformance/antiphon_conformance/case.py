"""`Case`: a chunk stream and what must be in the output; read from JSON, one file a case.

The JSON is the truth: `cases/schema.json` describes it, and what is read here is as strict. Chunks may be written in
brief, without what is the same in all of them; `Case.chunks` are whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast, get_args

import msgspec

from .read import Json, mappings, quoted

Capability: TypeAlias = Literal[
    "reasoning",
    "refusal",
    "tools",
    "custom_tools",
    "structured_output",
    "parallel_tools",
    "logprobs",
    "annotations",
    "audio",
    "usage",
    "errors",
    "n>1",
    "http",
]
# What is off unless it is asked for: GRAMMAR, "Opt-ins". An adapter states them like capabilities, and is told of them.
OptIn: TypeAlias = Literal["think_tags", "tool_call_tags", "finish_reason_optional"]

CAPABILITIES: tuple[str, ...] = (*get_args(Capability), *get_args(OptIn))
# What is looked at where an adapter states nothing.
USUAL: frozenset[str] = frozenset(get_args(Capability)) - {"audio", "http"}

# What a chunk has where its case does not say otherwise.
ENVELOPE: Json = {
    "id": "chatcmpl-case",
    "object": "chat.completion.chunk",
    "created": 1700000000,
    "model": "case-model",
}
OURS = files("antiphon_conformance").joinpath("cases")
MOST_BYTES = 64 * 1024 * 1024  # of a case's file, or of its chunks
DEEPEST = 20  # folders within each other: a link to a folder above would never end
_BOM = b"\xef\xbb\xbf"
_IN_CHOICE = ("delta", "finish_reason", "logprobs")

Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9-]+/[a-z0-9-]+$")]
Code = Annotated[str, msgspec.Meta(pattern=r"^[A-Z]{3}[0-9]{3}$")]
Words = Annotated[str, msgspec.Meta(min_length=1)]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base of what is read from a case: an unknown key is an error."""


class ItemBase(_Strict, frozen=True, tag_field="type"):
    """The base of items: `type` says which."""


class PartExpected(_Strict, frozen=True):
    """A part of a message: text, or a refusal."""

    text: str | None = None
    refusal: str | None = None


class MessageExpected(ItemBase, frozen=True, tag="message"):
    """A message. `text` or `refusal` is its one part; `content` are its parts where it has several.

    `urls` are those of its annotations, `tokens` those of its log probabilities, in order.
    """

    text: str | None = None
    refusal: str | None = None
    content: list[PartExpected] | None = None
    urls: list[str] | None = None
    tokens: list[str] | None = None
    status: Literal["completed", "incomplete"] = "completed"

    @property
    def parts(self) -> list[tuple[str, str]]:
        """The type and text of each part."""
        parts = self.content if self.content is not None else [PartExpected(self.text, self.refusal)]
        return [
            ("refusal", one.refusal) if one.refusal is not None else ("output_text", one.text or "") for one in parts
        ]


class ReasoningExpected(ItemBase, frozen=True, tag="reasoning"):
    """A reasoning item. `sealed`: whether it has encrypted content; None where that is not looked at."""

    text: str
    sealed: bool | None = None


class CallExpected(ItemBase, frozen=True, tag="function_call"):
    """A function call. Without `call_id` any that is not empty will do."""

    name: str
    arguments: str
    call_id: str | None = None
    status: Literal["completed", "incomplete"] = "completed"


class CustomCallExpected(ItemBase, frozen=True, tag="custom_tool_call"):
    """A call of a custom tool. Without `call_id` any that is not empty will do."""

    name: str
    input: str
    call_id: str | None = None
    status: Literal["completed", "incomplete"] = "completed"


ItemExpected: TypeAlias = MessageExpected | ReasoningExpected | CallExpected | CustomCallExpected


class UsageExpected(_Strict, frozen=True):
    """Counts of a usage; those that are None are not looked at."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class Expected(_Strict, frozen=True):
    """What must be in the terminal response. `reason`: why it is incomplete. `error`: the code where it failed.

    `usage` is null where there must be none, and left out where it is not looked at.
    """

    status: Literal["completed", "incomplete", "failed"]
    output: list[ItemExpected]
    reason: Literal["max_output_tokens", "content_filter"] | None = None
    error: str | None = None
    usage: UsageExpected | msgspec.UnsetType | None = msgspec.UNSET


class Raises(_Strict, frozen=True):
    """What the source of chunks raises after the last one."""

    message: str
    type: Literal["ConnectionError", "TimeoutError", "RuntimeError"] = "ConnectionError"


FormName: TypeAlias = Literal["characters", "interleaved", "broken", "usage-alone", "usage-on-finish", "empty", "nulls"]


class CaseFile(_Strict, frozen=True, kw_only=True):
    """A case as its file has it. `chunks`: the chunks, or the path of a file of JSON lines beside this one.

    A chunk without `choices` is in brief: `delta`, `finish_reason` and `logprobs` are those of its one choice, what else
    it has is at its top. `{"raw": …}` is taken as it is; all others have `id`, `object`, `created` and `model` added.
    `done`: whether `[DONE]` ends the stream; where that is not said, it does if there is a finish_reason. `not_as`:
    forms that would be another case.
    """

    id: Name
    title: Words
    source: Words
    rules: list[Code]
    chunks: list[dict[str, Any]] | str
    expect: Expected
    needs: list[Capability] = []
    opt_ins: list[OptIn] = []
    done: bool | None = None
    raises: Raises | None = None
    request: dict[str, Any] | None = None
    not_as: list[FormName] = []


@dataclass(frozen=True, slots=True)
class Case:
    """A case, ready to be put to an adapter: its chunks are whole. `form` is "" but for one that was derived."""

    id: str
    title: str
    source: str
    rules: tuple[str, ...]
    chunks: tuple[Json, ...]
    expect: Expected | None
    needs: frozenset[str] = frozenset()
    opt_ins: frozenset[str] = frozenset()
    done: bool = False
    raises: Raises | None = None
    request: Json | None = None
    not_as: frozenset[str] = frozenset()
    form: str = ""

    @property
    def finishes(self) -> bool:
        """Whether a chunk has a finish_reason."""
        return any(choice.get("finish_reason") for chunk in self.chunks for choice in choices(chunk))


@dataclass(frozen=True, slots=True)
class BadCase:
    """A file that is no case, and what is wrong with it: the suite's error, HAR001."""

    id: str
    reason: str


def whole(written: Json) -> Json:
    """Return the chunk that `written` stands for."""
    if "raw" in written:
        return _raw(written["raw"])
    if "choices" in written:
        return {**ENVELOPE, **written}
    top = {key: value for key, value in written.items() if key not in _IN_CHOICE}
    inner = {key: written[key] for key in _IN_CHOICE if key in written}
    return {**ENVELOPE, "choices": [{"index": 0, "delta": {}, "finish_reason": None, **inner}], **top}


def _raw(written: object) -> Json:
    if not isinstance(written, dict):
        raise ValueError(f"raw is {quoted(written)}, not an object: a chunk is one")
    return dict(cast("Json", written))


def choices(chunk: Json) -> list[Json]:
    """Return the choices of a chunk that are objects."""
    return mappings(chunk.get("choices"))


def read_case(data: bytes, name: str, beside: Traversable | None = None) -> Case | BadCase:
    """Return the case in `data`. `name` is what it is called where it is none; `beside` is the folder of its file."""
    try:
        written = msgspec.json.decode(data.removeprefix(_BOM), type=CaseFile)
        return _made(written, _chunks(written, beside))
    except (msgspec.DecodeError, ValueError, OSError, RecursionError) as problem:
        return BadCase(name, f"{problem}")


def _chunks(written: CaseFile, beside: Traversable | None) -> list[Json]:
    if not isinstance(written.chunks, str):
        return written.chunks
    if beside is None:
        raise ValueError(f"chunks is a path, {written.chunks!r}, and the case is in no folder")
    lines = _bytes(beside.joinpath(written.chunks)).splitlines()
    return [msgspec.json.decode(line, type=dict[str, Any]) for line in lines if line.strip()]


def _bytes(file: Traversable) -> bytes:
    """Return what is in a file. Raises OSError where it cannot be read, ValueError where it is none, or too big."""
    if not file.is_file():
        raise ValueError(f"{file.name} is not there, or is no plain file")
    with file.open("rb") as opened:
        data = opened.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"{file.name} has more than {MOST_BYTES} bytes, of which at most so many are read")
    return data


def _made(written: CaseFile, chunks: Sequence[Json]) -> Case:
    made = Case(
        written.id,
        written.title,
        written.source,
        tuple(written.rules),
        tuple(map(whole, chunks)),
        written.expect,
        frozenset(written.needs) | frozenset(written.opt_ins),
        frozenset(written.opt_ins),
        raises=written.raises,
        request=written.request,
        not_as=frozenset(written.not_as),
    )
    done = written.done if written.done is not None else made.finishes and made.raises is None
    return with_done(made, done)


def with_done(case: Case, done: bool) -> Case:
    """Return `case` with or without `[DONE]` at its end."""
    return replace(case, done=done)


@cache
def load_cases() -> tuple[Case | BadCase, ...]:
    """Return all cases of the suite, by id."""
    return tuple(_read_folder(OURS))


def read_cases(folder: Path) -> tuple[Case | BadCase, ...]:
    """Return the cases in a folder of one's own, with those in its folders."""
    return tuple(_read_folder(folder))


def _read_folder(folder: Traversable) -> Iterator[Case | BadCase]:
    seen: set[str] = set()
    for name, file, beside in _walk(folder, ""):
        try:
            case = read_case(_bytes(file), name, beside)
        except (OSError, ValueError) as problem:
            case = BadCase(name, f"it cannot be read: {problem}")
        if isinstance(case, Case) and case.id in seen:
            case = BadCase(name, f"another case has the id {case.id!r}")
        elif isinstance(case, Case) and case.id != name and folder is OURS:
            case = BadCase(name, f"its id is {case.id!r}; the id is the folder and the name of the file")
        seen.add(case.id)
        yield case


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable, Traversable]]:
    """Yield the name of each case, its file and the folder that it is in."""
    if prefix.count("/") > DEEPEST:
        return
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".json") and entry.name != "schema.json":
            yield f"{prefix}{entry.name.removesuffix('.json')}", entry, folder


def cases_hash(cases: Iterable[Case | BadCase]) -> str:
    """Return a short hash of what the cases say: the same cases have the same."""
    digest = hashlib.sha256()
    for case in cases:
        digest.update(msgspec.json.encode(case, order="deterministic"))
    return digest.hexdigest()[:16]


def case_schema() -> Json:
    """Return the JSON Schema of a case's file, as `cases/schema.json` has it."""
    schema = msgspec.json.schema(CaseFile)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A case of the conformance suite"}
    return {**head, **schema}
