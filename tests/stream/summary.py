"""Events as a compact summary, twice: as the terminal event tells it, and as the deltas alone tell it.

Written from the description of the event stream, without the library: it is what the tests compare with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

Json: TypeAlias = dict[str, Any]

SHARED = Path(__file__).resolve().parents[3] / "shared"  # beside the checkout, where it exists

TERMINAL = ("response.completed", "response.incomplete", "response.failed")

# item id prefix -> nothing else may be counted in its place
IDS = re.compile(r"\b(resp|msg|rs|fc|ctc|call)_[A-Za-z0-9_-]+")

# delta event -> the key under which its text is told again at the end of the part
_TOLD_UNDER = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
    "response.reasoning_summary_text.delta": "text",
    "response.reasoning_text.delta": "text",
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}

_NEVER_STREAMED = ("status", "provider_data", "encrypted_content")

_TEXT_OF = {"output_text": "text", "refusal": "refusal"}


@dataclass(frozen=True)
class Summary:
    """What a stream came to. `output` are compact items, `response` is the terminal snapshot."""

    terminal: str  # completed, incomplete, failed
    reason: str | None
    code: str | None
    message: str
    output: list[Json]
    response: Json


def is_object(value: Any) -> TypeGuard[Json]:
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def told(events: Sequence[Json]) -> Summary:
    """Return what the terminal event says. There must be exactly one, at the end."""
    ends = [n for n, event in enumerate(events) if event["type"] in TERMINAL]
    assert ends == [len(events) - 1], f"terminal events at {ends} of {len(events)} events"
    return of_response(events[-1]["response"], terminal=events[-1]["type"])


def of_response(response: Json, terminal: str | None = None) -> Summary:
    """Return the summary of a response as it stands."""
    error: Json = response.get("error") or {}
    details: Json = response.get("incomplete_details") or {}
    return Summary(
        terminal=(terminal or response["status"]).removeprefix("response."),
        reason=details.get("reason"),
        code=error.get("code"),
        message=error.get("message") or "",
        output=[compact(item) for item in response["output"]],
        response=response,
    )


def compact(item: Mapping[str, Any]) -> Json:
    """Return type, content and status of one output item."""
    match item["type"]:
        case "message":
            parts = [[part["type"], part[_TEXT_OF[part["type"]]]] for part in item["content"]]
            notes = {key: _gathered(item, key) for key in ("annotations", "logprobs")}
            return {"type": "message", "parts": parts, "status": item.get("status"), **notes}
        case "reasoning":
            pieces: list[Json] = [*item["summary"], *(item.get("content") or ())]
            sealed = item.get("encrypted_content")
            kept_data: Json = item.get("provider_data") or {}
            return {
                "type": "reasoning",
                "text": "".join(piece["text"] for piece in pieces),
                "encrypted": sealed,
                "sealed": bool(sealed),
                "details": kept_data.get("reasoning_details"),
            }
        case "function_call":
            return {key: item.get(key) for key in ("type", "name", "arguments", "call_id", "status")}
        case "custom_tool_call":
            return {key: item.get(key) for key in ("type", "name", "input", "call_id", "status")}
        case other:
            return {"type": other}


def heard(events: Iterable[Json]) -> list[Json]:
    """Return the compact items as `added`, the deltas and the annotations give them.

    Only the status and what is never streamed (provider_data, encrypted_content) are taken from `done`.
    """
    items: dict[int, Json] = {}
    for event in events:
        item = items.get(event.get("output_index", -1), {})
        match event["type"]:
            case "response.output_item.added":
                items[event["output_index"]] = _own(event["item"])
            case "response.output_item.done":
                item.update({key: event["item"][key] for key in _NEVER_STREAMED if key in event["item"]})
            case "response.content_part.added":
                item.setdefault("content", []).append(_own(event["part"]))
            case "response.reasoning_summary_part.added":
                item["summary"].append(_own(event["part"]))
            case "response.output_text.annotation.added":
                _place(item, event)["annotations"].append(event["annotation"])
            case kind if kind in _TOLD_UNDER:
                _place(item, event)[_TOLD_UNDER[kind]] += event["delta"]
                _place(item, event).setdefault("logprobs", []).extend(event.get("logprobs") or [])
            case _:
                pass
    return [compact(items[n]) for n in sorted(items)]


def _own(value: Json) -> Json:
    copy: Json = json.loads(json.dumps(value))
    return copy


def _gathered(item: Mapping[str, Any], key: str) -> list[Any]:
    lists: list[list[Any]] = [part.get(key) or [] for part in item["content"]]
    return [one for each in lists for one in each]


def _place(item: Json, event: Json) -> Json:
    """Return the part (or the item) that a delta adds to."""
    if "summary_index" in event:
        place: Json = item["summary"][event["summary_index"]]
    elif "content_index" in event:
        place = item["content"][event["content_index"]]
    else:
        place = item
    return place


def differences(expected: Sequence[Json], output: Sequence[Json]) -> list[str]:
    """Return in words where `output` is not as expected; nothing where it is.

    Items are compared key by key. A message may be given by its `text`. A `call_id` of None stands for a made one.
    `arguments` of the form {"json": value} are compared as JSON.
    """
    found = [
        f"item {n}: {key} is {output[n].get(key)!r}, not {value!r}"
        for n, item in enumerate(expected[: len(output)])
        for key, value in item.items()
        if not _same(key, value, output[n])
    ]
    if len(expected) != len(output):
        found.append(f"{len(output)} items, not {len(expected)}: {list(output)!r}")
    return found


def _same(key: str, value: Any, item: Json) -> bool:
    if key == "text" and item["type"] == "message":
        return bool(item["parts"] == [["output_text", value]])
    if key == "call_id" and value is None:
        return bool(re.fullmatch(r"call_\S+", item.get(key) or ""))
    if is_object(value) and "json" in value:
        return bool(_parsed(item.get(key)) == value["json"])
    return within(value, item.get(key))


def within(expected: Any, actual: Any) -> bool:
    """Whether all that is expected is there: of an object its keys, of a list all, anything else as it is."""
    if is_object(expected) and is_object(actual):
        return all(key in actual and within(value, actual[key]) for key, value in expected.items())
    if is_list(expected) and is_list(actual):
        return len(expected) == len(actual) and all(map(within, expected, actual))
    return bool(expected == actual)


def _parsed(arguments: Any) -> Any:
    try:
        return json.loads(arguments)
    except (TypeError, ValueError):
        return f"not JSON: {arguments!r}"


def anonymous(events: Sequence[Json]) -> list[Json]:
    """Return the events with their made ids renamed in order of appearance: msg_1, fc_1, call_1, …"""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}

    def renamed(match: re.Match[str]) -> str:
        whole, prefix = match.group(0), match.group(1)
        if whole not in names:
            counts[prefix] = counts.get(prefix, 0) + 1
            names[whole] = f"{prefix}_{counts[prefix]}"
        return names[whole]

    return [_walk(event, renamed) for event in events]


def _walk(value: Any, renamed: Callable[[re.Match[str]], str], key: str = "") -> Any:
    if is_object(value):
        return {name: _walk(inner, renamed, name) for name, inner in value.items()}
    if is_list(value):
        return [_walk(inner, renamed) for inner in value]
    if isinstance(value, str) and key in ("id", "item_id", "call_id"):
        return IDS.sub(renamed, value)
    return value


def plain(event: Any) -> Json:
    """Return an event (an openai object or a dict) as a dict."""
    dump = getattr(event, "model_dump", None)
    made: Json = dict(event) if dump is None else dump(mode="json", warnings=False)
    return made


def flat_usage(response: Json) -> Json | None:
    """Return the counts of the response's usage in one level, or None."""
    if response.get("usage") is None:
        return None
    usage: Json = response["usage"]
    counts = {key: value for key, value in usage.items() if isinstance(value, int)}
    of_input: Json = usage.get("input_tokens_details") or {}
    of_output: Json = usage.get("output_tokens_details") or {}
    return {**counts, **of_input, **of_output}


def kept(response: Json) -> str:
    """Return all provider_data of the response and its items, as JSON."""
    owners = [response, *response["output"]]
    return json.dumps([owner.get("provider_data") for owner in owners], ensure_ascii=False)
