"""The built-in scenarios: scripted conversations, each with the oddities of some provider. See `scenarios/*.json`.

A scenario has a `title`, a `manner` (who streams so), the `model` that its chunks name (the request's if none), and
`turns`: the first answers a user message, the next one the tool outputs after it, and so on; the last is repeated. A
turn is a refused request (`status`, `headers`, `body`), or `chunks`, where a text is a line that is sent as it is, and
`$only` keeps the common keys off. `usage` is sent if the request asks for it. `done` false: no `[DONE]`. `breaks`: the
connection breaks. `{user}` and `{output}` stand for the last user message and the tool outputs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from antiphon_providers.backends.concealing import Hide
from antiphon_providers.backends.failures import failure_of_answer

from .playing import CREATED, DONE_EVENT, Json, Played, asks_usage, cut, event, most_tokens
from .reply import tool_outputs, user_text

_FOLDER: Final = files("antiphon_providers.backends.replay").joinpath("scenarios")


_WORD = re.compile(r"\{user\}|\{output\}")


@cache
def scenario_names() -> tuple[str, ...]:
    """Return the names of the built-in scenarios."""
    names = (entry.name for entry in _FOLDER.iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in names if name.endswith(".json")))


@cache
def scenario(name: str) -> Json:
    """Return a scenario as its file has it."""
    held: Json = json.loads(_FOLDER.joinpath(f"{name}.json").read_text("utf-8"))
    return held


def play_scenario(name: str, body: Mapping[str, Any]) -> Played:
    """Return the turn that answers the request. Raises a ProviderError where the scenario is a refused request."""
    script = scenario(name)
    turn: Json = script["turns"][min(_answers(body), len(script["turns"]) - 1)]
    if "status" in turn:
        raise _refused(turn)
    sent = [piece for one in _lines(script, turn, body) if (piece := _piece(one))]
    return Played((*sent, DONE_EVENT) if turn.get("done", True) else tuple(sent), turn.get("breaks"))


def _answers(body: Mapping[str, Any]) -> int:
    """Return how many assistant messages there are after the last user message."""
    messages: Sequence[Json] = body.get("messages") or ()
    count = 0
    for one in reversed(messages):
        if one.get("role") == "user":
            break
        count += one.get("role") == "assistant"
    return count


def _refused(turn: Json) -> Exception:
    body = turn["body"] if isinstance(turn["body"], str) else json.dumps(turn["body"])
    return failure_of_answer(turn["status"], turn.get("headers") or {}, body.encode(), Hide())


def _lines(script: Json, turn: Json, body: Mapping[str, Any]) -> Iterator[Json | str]:
    messages: Sequence[Json] = body.get("messages") or ()
    words = {"{user}": user_text(messages), "{output}": "; ".join(tool_outputs(messages))}
    own = {key: value for key, value in script.items() if key not in ("title", "manner", "turns")}
    base = {
        "id": "chatcmpl-replay",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": body.get("model"),
        **own,
    }
    held = [
        one if isinstance(one, str) else one.get("$only") or {**base, **_filled(one, words)} for one in turn["chunks"]
    ]
    lines = [one for one in held if isinstance(one, str)]
    if lines:
        yield from held
    else:
        yield from cut((one for one in held if not isinstance(one, str)), most_tokens(body))
    if "usage" in turn and asks_usage(body):
        yield {**base, "choices": [], "usage": turn["usage"]}


def _filled(value: Any, words: Mapping[str, str]) -> Any:
    """Return JSON data with the place-holders in its texts filled."""
    match value:
        case str():
            return _WORD.sub(lambda found: words[found.group()], value)
        case dict():
            return {key: _filled(one, words) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list():
            return [_filled(one, words) for one in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def _piece(one: Json | str) -> bytes:
    return f"{one}\n\n".encode() if isinstance(one, str) else event(one)
