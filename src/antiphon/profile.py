"""`Profile`: the frozen facts about a provider, in both directions, and where profiles come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

from .errors import BadInput, ProfileNotFound
from .near import listing

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from .stream.deltas import Delta

GROUP = "antiphon.providers"

MaxTokensField: TypeAlias = Literal["max_tokens", "max_completion_tokens"]
EffortField: TypeAlias = Literal["reasoning_effort", "reasoning", "none"]
ReasoningReplay: TypeAlias = Literal[
    "none", "reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "typed_content"
]


class Transducer(Protocol):
    """A quirk at work on one stream: deltas in, deltas out."""

    def feed(self, one: Delta) -> Sequence[Delta]:
        """Return what `one` becomes, in order; called once a delta."""
        ...

    def finish(self) -> Sequence[Delta]:
        """Return what was kept back; called once, at the end of the stream."""
        ...


@runtime_checkable
class Idling(Protocol):
    """A transducer that may say that it is done with a stream: one that does not is asked of every delta."""

    @property
    def idle(self) -> bool:
        """Whether all that comes from now on is passed on as it is, so that it need not be asked."""
        ...


def is_idle(transducer: Transducer) -> bool:
    """Return whether `transducer` need not be asked any more."""
    return isinstance(transducer, Idling) and transducer.idle


@runtime_checkable
class Quirk(Protocol):
    """Something about a provider that data cannot say: it makes one `Transducer` for each stream."""

    def start(self) -> Transducer:
        """Return a fresh transducer."""
        ...


# Where reasoning is found in a delta, in the order in which different texts are joined.
REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")

RESPONSE_FORMATS = frozenset({"text", "json_object", "json_schema"})
TOOL_CHOICE_MODES = frozenset({"auto", "none", "required", "named"})


@dataclass(frozen=True, slots=True)
class Profile:
    """The facts about a provider. The defaults are OpenAI's own on the way out, and tolerant on the way back.

    The chunk stream:

    - `reasoning_fields`: names of delta fields that hold reasoning text, in the order in which different texts join.
    - `finish_reason_optional`: the stream may end without a finish_reason and still be complete.
    - `quirks`: applied to the deltas, in order.

    The request, messages:

    - `developer_role`: the role `developer` is known; else it is sent as `system`.
    - `single_leading_system`: all system and developer messages are merged into one, the first.
    - `null_content_with_calls`: an assistant message with tool calls and no text has content null; else "".
    - `call_id_pattern`: a regular expression that a whole tool call id must match; None: any id.
    - `images`, `files`, `audio`: content parts of that kind are accepted.
    - `tool_parts`: the types of content parts that a tool message may hold beside text (`image_url`, `file`,
      `input_audio`); what else a tool gave back is shown in a user message after the outputs.

    The request, reasoning:

    - `reasoning_replay`: the field of an assistant message in which earlier reasoning goes back.
    - `reasoning_replay_always`: it goes back for every earlier turn; else only for the assistant messages after the
      last user message, and only where one of them calls a tool.
    - `family`: whose reasoning it is: signed pieces go back only to the family they came from. "": the profile's name.
    - `thought_signatures`: what came beside a tool call (`extra_content`) must come back with it.
    - `opens_seals`: its servers may open the reasoning that antiphon's gateway sealed in `encrypted_content`; else that
      is not sent to their Responses endpoint, which refuses it.
    - `effort_field`: where the reasoning effort goes: `reasoning_effort`, the object `reasoning`, or nowhere.
    - `effort_levels`: the levels that are accepted, from low to high; None: any.

    The request, parameters:

    - `max_tokens_field`: which of the two names the token limit has.
    - `stream_usage`: usage is asked for by `stream_options.include_usage`; else that is not sent.
    - `response_formats`: the types of `response_format` that are accepted.
    - `format_with_tools`: a `response_format` is accepted together with tools; else the form of the answer is asked for
      in words where tools are offered.
    - `parallel_tool_calls`: the parameter of that name is accepted.
    - `tool_choice_modes`: what `tool_choice` may be; "named" is a function of one's choice.
    - `strict_tools`: `strict` of a function tool is accepted.
    - `passthrough`: further Responses parameters that go through under their own names.

    Where it is found, and how it is known:

    - `base_urls`: patterns of `host[:port][/path]`, with `*` for anything; see `find_profile`.
    - `model_prefixes`: how names of its models begin, in lower case; see `find_profile`.
    - `model_words`: words in the names of the models whose reasoning goes back as the profile says, whoever serves
      them, in lower case; see `profile_by_word`.
    - `evidence`: fact -> the recording, the vendor's page or the public thread that shows it.
    """

    name: str = "default"
    reasoning_fields: tuple[str, ...] = REASONING_FIELDS
    finish_reason_optional: bool = False
    quirks: tuple[Quirk, ...] = ()

    developer_role: bool = True
    single_leading_system: bool = False
    null_content_with_calls: bool = True
    call_id_pattern: str | None = None
    images: bool = True
    files: bool = True
    audio: bool = False
    tool_parts: frozenset[str] = frozenset()

    reasoning_replay: ReasoningReplay = "none"
    reasoning_replay_always: bool = False
    family: str = ""
    thought_signatures: bool = False
    opens_seals: bool = True
    effort_field: EffortField = "reasoning_effort"
    effort_levels: tuple[str, ...] | None = None

    max_tokens_field: MaxTokensField = "max_completion_tokens"
    stream_usage: bool = True
    response_formats: frozenset[str] = RESPONSE_FORMATS
    format_with_tools: bool = True
    parallel_tool_calls: bool = True
    tool_choice_modes: frozenset[str] = TOOL_CHOICE_MODES
    strict_tools: bool = True
    passthrough: frozenset[str] = frozenset()

    base_urls: tuple[str, ...] = ()
    model_prefixes: tuple[str, ...] = ()
    model_words: tuple[str, ...] = ()
    evidence: Mapping[str, str] = field(default_factory=dict[str, str], compare=False, repr=False)


DEFAULT = Profile()


def load_profile(name: str) -> Profile:
    """Return the profile called `name`, from the entry-point group `antiphon.providers`.

    Raises ProfileNotFound, which lists the known names, and BadInput where an entry point is not a `Profile`.
    """
    if name == DEFAULT.name:
        return DEFAULT
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers without types
        raise BadInput(f"a profile is {type(name).__name__}: it is the name of one, or a `Profile`")
    points = _points()
    if name not in points:
        known = listing(name, sorted({DEFAULT.name, *points}))
        raise ProfileNotFound(f"no profile is called {name!r}{known}", "Give a `Profile` to use your own")
    profile = points[name].load()
    if not isinstance(profile, Profile):
        raise BadInput(f"entry point {name!r} of {GROUP!r} is a {type(profile).__name__}, not a Profile")
    return profile


def find_profile(*, base_url: str = "", model: str = "", profiles: Iterable[Profile] | None = None) -> Profile | None:
    """Return the profile whose tables know `base_url`, else the one that knows how `model` begins, else None.

    A URL names the server and so counts before the model, which many servers have; the longest pattern or prefix
    wins. `profiles` are the ones to look among, all installed ones if None.
    """
    among = [load_profile(name) for name in sorted(_points())] if profiles is None else list(profiles)
    place, name = _place(base_url), model.lower()
    urls = [(len(at), one) for one in among for at in one.base_urls if place and _is_at(place, at)]
    prefixes = [(len(start), one) for one in among for start in one.model_prefixes if name.startswith(start)]
    found = urls or prefixes
    return max(found, key=lambda match: match[0])[1] if found else None


@cache
def profile_by_word(model: str) -> Profile | None:
    """Return the profile with the longest of the `model_words` that are in the name of the model, among all installed.

    None where no profile knows a word in it.
    """
    among = [load_profile(name) for name in sorted(_points())] if model else []
    found = [(len(word), one) for one in among for word in one.model_words if word in model.lower()]
    return max(found, key=lambda match: match[0])[1] if found else None


@cache
def _points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # costs 27 ms, and most conversions name no profile

    return {point.name: point for point in entry_points(group=GROUP)}


def _place(url: str) -> str:
    """Return `host[:port][/path]` of a URL, in lower case; the names of the own machine are one name."""
    place = url.lower().partition("://")[2] or url.lower()
    place = place.partition("?")[0].rstrip("/")
    host, slash, path = place.partition("/")
    host = host.rpartition("@")[2].removesuffix(":443").removesuffix(":80")
    for own in ("127.0.0.1", "0.0.0.0", "[::1]"):
        if host == own or host.startswith(f"{own}:"):
            host = f"localhost{host.removeprefix(own)}"
    return f"{host}{slash}{path}"


def _is_at(place: str, pattern: str) -> bool:
    return fnmatchcase(place, pattern) or fnmatchcase(place, f"{pattern}/*")
