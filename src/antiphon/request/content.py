"""The content of messages and tool outputs: parts of the Responses API to parts of chat.

Text alone becomes one string, which every backend takes. A part that a backend cannot take leaves a note in its place,
so that the model knows that something was there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import msgspec

from antiphon.profile import Profile
from antiphon.stream.chunk import fields, is_object, plain, text_of, word

from .names import Names
from .read import NOTHING, Json, described, entries, record
from .report import BadRequest, Remark, Report

ChatPart: TypeAlias = dict[str, Any]
Part: TypeAlias = str | ChatPart  # a string is text
Content: TypeAlias = str | list[ChatPart]

BREAKPOINT = "prompt_cache_breakpoint"
REFUSAL = Remark(
    "changed", "refusal", "text", "backends that know no refusals would get an empty message", ".content[0]"
)
TEXTS = frozenset({"input_text", "text", "output_text", "summary_text", "reasoning_text"})


class Scope(msgspec.Struct, frozen=True):
    """What all that reads one request shares."""

    profile: Profile
    report: Report
    names: Names
    shells: dict[str, str] = {}  # item id of a call of a local shell, by which its output may name it -> its call id


def user_content(content: Any, path: str, scope: Scope) -> Content:
    """Return the content of a user message: a string where all is text, else parts."""
    return content_of(list(_parts(content, path, scope)))


def plain_text(content: Any, path: str, scope: Scope) -> str:
    """Return the content of a message that holds text alone: of the system, of the developer."""
    return joined(_text_alone(part, path, scope) for part in _parts(content, path, scope))


def answer_text(part: Any, path: str, scope: Scope) -> str:
    """Return the text of one part of an assistant message. A refusal is what was said, so it is text."""
    if isinstance(part, str):
        return part
    held = record(part, path)
    if held.get("type") == "output_audio":
        scope.report.weakened(path, "output_audio", "its transcript", "chat takes no audio of an assistant back")
        return text_of(held.get("transcript"))
    return _text_alone(_part(held, path, scope), path, scope)


def tool_content(output: Any, path: str, scope: Scope) -> tuple[Content, tuple[ChatPart, ...]]:
    """Return what a tool gave back: what a tool message holds of it, and the parts that it cannot hold.

    A value that is no string and no list of parts is written as JSON.
    """
    if isinstance(output, str) or output is None:
        return output or "", ()
    listed = [output] if is_object(output) else output if isinstance(output, int | float) else entries(output, path)
    if not isinstance(listed, list) or not _is_content(listed):
        return json.dumps(plain(output if is_object(output) else listed), ensure_ascii=False), ()
    parts = list(_parts([one if isinstance(one, str) or _is_part(one) else _told(one) for one in listed], path, scope))
    held = scope.profile.tool_parts
    shown = tuple(part for part in parts if not isinstance(part, str) and part["type"] not in held)
    return content_of([part for part in parts if isinstance(part, str) or part["type"] in held]), shown


def text_part(text: str) -> ChatPart:
    """Return a text part."""
    return {"type": "text", "text": text}


def joined(texts: Iterable[Any]) -> str:
    """Return texts as one, a line break between them; empty ones leave none."""
    return "\n".join(text for text in texts if text)


class Odd(LookupError):
    """A part that has not its usual form."""


def content_of(parts: list[Part]) -> Content:
    """Return content of parts: a string where all is text, else parts, without empty texts."""
    if all(isinstance(part, str) for part in parts):
        return joined(parts)
    return [text_part(part) if isinstance(part, str) else part for part in parts if part]


def _is_content(listed: list[Any]) -> bool:
    """Return whether the list of a tool's output is content, and not some JSON of the tool's own: one with media is."""
    parts = [_is_part(one) for one in listed if not isinstance(one, str)]
    media = any(_is_part(one) and word(fields(one).get("type")) in MEDIA for one in listed)
    return media or (bool(parts) and all(parts)) or not listed


def _told(one: Any) -> ChatPart:
    return text_part(json.dumps(plain(one), ensure_ascii=False))


def _is_part(one: Any) -> bool:
    """Return whether an entry of a tool's output is a content part, and not some JSON of the tool's own."""
    held = fields(one) if is_object(one) else NOTHING
    kind = held.get("type")
    if not isinstance(kind, str):
        return False
    return isinstance(held.get("text"), str) if kind in TEXTS else kind in MEDIA and _holds(held, kind)


def _holds(held: Json, kind: str) -> bool:
    """Return whether a part of chat's own types holds what they hold: other JSON has such types too."""
    if kind == "file":
        return is_object(held.get("file")) or any(held.get(key) for key in ("file_data", "file_id"))
    return kind not in ("image_url", "computer_screenshot") or bool(held.get("image_url") or held.get("file_id"))


def _parts(content: Any, path: str, scope: Scope) -> Iterable[Part]:
    if content is None:
        return
    if isinstance(content, str):
        yield content
        return
    for number, part in enumerate([content] if is_object(content) else entries(content, path)):
        here = f"{path}[{number}]"
        yield part if isinstance(part, str) else _part(record(part, here), here, scope)


def _part(held: Json, path: str, scope: Scope) -> Part:
    kind = held.get("type")
    if held.get(BREAKPOINT) is not None:
        scope.report.ignored(f"{path}.{BREAKPOINT}", "a cache breakpoint", "chat content has none")
    if (isinstance(kind, str) and kind in TEXTS) or (kind is None and "text" in held):
        return _said(held, path)
    if kind == "refusal" or (kind is None and held.get("refusal")):
        scope.report.changed(path, REFUSAL.came, str(REFUSAL.became), REFUSAL.why)
        return text_of(held.get("refusal"))
    if isinstance(kind, str) and kind in MEDIA:
        return MEDIA[kind](held, path, scope)
    if not isinstance(kind, str):
        raise BadRequest(f"{path}.type", f"the type of a content part is expected, and here is {described(kind)}")
    return _note(f"{kind} left out", kind, path, scope, "chat has no such content part")


def _said(held: Json, path: str) -> str:
    """Return the text of a part; null is none. Raises BadRequest for what holds no text that can be read."""
    given = held.get("text", NOTHING)
    text = text_of(given)
    if text or given is None or given == "":
        return text
    came = "none" if given is NOTHING else described(given)
    raise BadRequest(f"{path}.text", f"a text is expected, and here is {came}")


def _image(held: Json, path: str, scope: Scope) -> Part:
    """Source: `image_url` parts of the Chat Completions API, which have no file ids."""
    given = held.get("image_url")
    nested = fields(given)
    url, detail = nested.get("url") or given, held.get("detail") or nested.get("detail")
    if not scope.profile.images:
        return _note("image left out", "an image", path, scope, f"profile {scope.profile.name!r} takes no images")
    if not isinstance(url, str) or not url:
        return _note("image left out", "an image without URL", path, scope, "chat takes images by URL alone")
    image: dict[str, Any] = {"url": url}
    if detail in ("auto", "low", "high"):
        image["detail"] = detail
    elif detail == "original":
        image["detail"] = "high"
        scope.report.weakened(f"{path}.detail", "original", "high", "chat has no such detail")
    elif detail is not None:
        scope.report.ignored(f"{path}.detail", f"{detail!r:.40}", "chat has no such detail")
    return {"type": "image_url", "image_url": image}


def _file(held: Json, path: str, scope: Scope) -> Part:
    """Source: `file` parts of the Chat Completions API, which have no URLs."""
    inner = record(held["file"], path) if is_object(held.get("file")) else held
    name = text_of(inner.get("filename")) or text_of(inner.get("file_url")) or "without name"
    file = {key: text for key in ("filename", "file_data", "file_id") if (text := word(inner.get(key)))}
    if held.get("detail") not in (None, "auto"):
        scope.report.ignored(f"{path}.detail", f"{held['detail']!r:.40}", "chat has no details of files")
    if not scope.profile.files:
        why = f"profile {scope.profile.name!r} takes no files"
        return _note(f"file left out: {name}", "a file", path, scope, why)
    if not file.keys() & {"file_data", "file_id"}:
        return _note(f"file left out: {name}", "a file by URL", path, scope, "chat takes files by data or id alone")
    return {"type": "file", "file": file}


def _audio(held: Json, path: str, scope: Scope) -> Part:
    given = held.get("input_audio")
    audio = record(given, f"{path}.input_audio") if given is not None else held
    if not scope.profile.audio:
        return _note("audio left out", "audio", path, scope, f"profile {scope.profile.name!r} takes no audio")
    if not text_of(audio.get("data")):
        return _note("audio left out", "audio without data", path, scope, "chat takes audio by its data alone")
    return {
        "type": "input_audio",
        "input_audio": {"data": text_of(audio.get("data")), "format": word(audio.get("format")) or "wav"},
    }


MEDIA: dict[str, Callable[[Json, str, Scope], Part]] = {
    "input_image": _image,
    "image_url": _image,
    "computer_screenshot": _image,  # Source: `Message` of openai 3.57's conversations
    "input_file": _file,
    "file": _file,
    "input_audio": _audio,
}


def _text_alone(part: Part, path: str, scope: Scope) -> str:
    if isinstance(part, str):
        return part
    return _note(f"{part['type']} left out", part["type"], path, scope, "only user messages hold more than text")


def _note(note: str, came: str, path: str, scope: Scope, why: str) -> str:
    scope.report.weakened(path, came, "a note in its place", why)
    return f"[{note}]"
