"""How a response ends: the finish words, and what it means that none came."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, TypeAlias

from .faults import SERVER_ERROR, Fault
from .items import Status

Terminal: TypeAlias = Literal["completed", "incomplete", "failed"]


class Gravity(IntEnum):
    """How grave a finish is; of several the gravest counts."""

    DONE = 0
    LENGTH = 1
    CONTENT_FILTER = 2
    ERROR = 3


# finish_reason -> how grave it is; any other word is a plain success
FINISHES: dict[str, Gravity] = {
    "stop": Gravity.DONE,
    "tool_calls": Gravity.DONE,
    "function_call": Gravity.DONE,
    "eos": Gravity.DONE,
    "length": Gravity.LENGTH,
    "max_tokens": Gravity.LENGTH,
    "model_length": Gravity.LENGTH,  # Mistral
    "model_context_window_exceeded": Gravity.LENGTH,  # Z.ai
    "content_filter": Gravity.CONTENT_FILTER,
    "safety": Gravity.CONTENT_FILTER,
    "sensitive": Gravity.CONTENT_FILTER,  # Z.ai
    "error": Gravity.ERROR,
    "network_error": Gravity.ERROR,  # Z.ai
    "insufficient_system_resource": Gravity.ERROR,  # DeepSeek: the answer was interrupted
}


@dataclass(frozen=True, slots=True)
class Ending:
    """The terminal event: `response.<terminal>`, why it is incomplete, and what failed."""

    terminal: Terminal
    reason: str | None = None
    fault: Fault | None = None

    @property
    def status(self) -> Status:
        """The status of the items that are open or held back when the response ends."""
        return "completed" if self.terminal == "completed" else "incomplete"


MOST = 5  # faults that a message names
COMPLETED = Ending("completed")
BY_GRAVITY: dict[Gravity, Ending] = {
    Gravity.DONE: COMPLETED,
    Gravity.LENGTH: Ending("incomplete", "max_output_tokens"),
    Gravity.CONTENT_FILTER: Ending("incomplete", "content_filter"),
    Gravity.ERROR: Ending("failed", fault=Fault(SERVER_ERROR, 'the provider ended with finish_reason "error"')),
}
EMPTY = Fault(SERVER_ERROR, "the stream was empty: no chunk came")
CUT = Fault(
    SERVER_ERROR,
    "the stream ended without a finish_reason: it was cut. "
    "If this provider ends so by habit, use a profile with finish_reason_optional",
)


@dataclass(slots=True)
class Seen:
    """What decides an ending, as the stream went by."""

    finish: Gravity | None = None
    chunks: bool = False  # any chunk came
    output: bool = False  # something visible came
    usage_last: bool = False  # a chunk with usage came, and nothing visible after or with it

    def finished(self, reason: str) -> None:
        """Take a finish word."""
        gravity = FINISHES.get(reason, Gravity.DONE)
        self.finish = gravity if self.finish is None else max(self.finish, gravity)


def ending(seen: Seen, *, done: bool, optional: bool, raised: Fault | None, faults: list[Fault]) -> Ending:
    """Return how the response ends. `raised` is what the source raised, `faults` what was remembered on the way."""
    if faults:
        return failed(*faults, *([raised] if raised else []))
    if seen.finish is not None:
        return BY_GRAVITY[seen.finish]
    if raised is not None:
        return failed(raised)
    if not seen.chunks:
        return failed(EMPTY)
    if done or seen.usage_last or (optional and seen.output):
        return COMPLETED
    return failed(CUT)


def failed(*faults: Fault) -> Ending:
    """Return the failed ending for these faults: the code of the first, the messages of all, each once."""
    said = list(dict.fromkeys(one.message for one in faults))
    more = [f"and {len(said) - MOST} more faults"] if len(said) > MOST else []
    return Ending("failed", fault=Fault(faults[0].code, "; ".join([*said[:MOST], *more])))
