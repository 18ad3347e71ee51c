"""How a stream of chunks ends, and which terminal event that implies.

Sources: GRAMMAR, the table of "Endings"; for words beside it the API references of Mistral (`model_length`), Z.ai
(`sensitive`, `model_context_window_exceeded`, `network_error`) and DeepSeek (`insufficient_system_resource`).
"""

from __future__ import annotations

from typing import NamedTuple

from .said import Said

# finish_reason -> (how grave it is, terminal event, why it is incomplete); every other word is a success
_ERROR = (3, "response.failed", "")
_FILTER = (2, "response.incomplete", "content_filter")
_LENGTH = (1, "response.incomplete", "max_output_tokens")
GRAVITY: dict[str, tuple[int, str, str]] = {
    "error": _ERROR,
    "network_error": _ERROR,
    "insufficient_system_resource": _ERROR,
    "content_filter": _FILTER,
    "safety": _FILTER,
    "sensitive": _FILTER,
    "length": _LENGTH,
    "max_tokens": _LENGTH,
    "model_length": _LENGTH,
    "model_context_window_exceeded": _LENGTH,
}
_SUCCESS = (0, "response.completed", "")


class Ending(NamedTuple):
    """The terminal event that is due. `why` is what in the chunks says so; `or_failed` is whether a failure would
    be right too, since the chunks hold something that cannot be placed. `fault` is whether an error is reported."""

    terminal: str
    reason: str
    why: str
    or_failed: bool = False
    fault: bool = False


def ending_of(said: Said) -> Ending:
    """Return the ending that the chunks imply."""
    if said.error is not None:
        return Ending("response.failed", "", f"the chunks report an error ({said.error[:80]})", fault=True)
    if not said.count:
        return Ending("response.failed", "", "there are no chunks")
    ending = _by_finish(said) if said.finishes else _without_finish(said)
    nameless = any(not call.raw_name for call in said.calls)
    if ending.terminal == "response.completed" and nameless and not said.unclear:
        return Ending("response.failed", "", "a tool call never got a name")
    blank = said.blank_after_usage and not said.finishes and not said.done
    return ending._replace(or_failed=said.odd or said.unclear or blank)


def _by_finish(said: Said) -> Ending:
    word = max(said.finishes, key=lambda one: GRAVITY.get(one, _SUCCESS)[0])
    _, terminal, reason = GRAVITY.get(word, _SUCCESS)
    return Ending(terminal, reason, f'finish_reason is "{word}"', fault=terminal == "response.failed")


def _without_finish(said: Said) -> Ending:
    if said.done:
        return Ending("response.completed", "", "`[DONE]` came")
    if said.usage_closes:
        return Ending("response.completed", "", "the usage came last")
    if said.finish_optional and said.visible:
        return Ending("response.completed", "", "the profile does without a finish_reason")
    return Ending("response.failed", "", "there is no finish_reason")
