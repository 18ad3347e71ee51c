"""The content of messages and tool outputs: parts of the Responses API to parts of chat.

Text alone becomes one string, which every backend takes. A part that a backend cannot take leaves a note in its place,
so that the model knows that something was there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, TypeAlias

import msgspec

from antiphon.profile import Profile
from antiphon.stream.chunk import fields, is_object, plain, text_of, word

from .names import Names
from .read import Json, described, entries, record
from .report import BadRequest, Remark, Report

ChatPart: TypeAlias = dict[str, Any]
Part: TypeAlias = str | ChatPart  # a string is text
Content: TypeAlias = str | list[ChatPart]

DETAILS = frozenset({"auto", "low", "high"})  # Source: `ImageURL.detail` of openai's chat types
BREAKPOINT = "prompt_cache_breakpoint"
SPOKEN = frozenset({"input_text", "text", "output_text"})  # the usual ones of `TEXTS`
REFUSAL = Remark(
    "changed", "refusal", "text", "backends that know no refusals would get an empty message", ".content[0]"
)
TEXTS = frozenset({"input_text", "text", "output_text", "summary_text", "reasoning_text"})


class Scope(msgspec.Struct, frozen=True):
    """What all that reads one request shares."""

    profile: Profile
    report: Report
    names: Names


def user_content(content: Any, path: str, scope: Scope) -> Content:
    """Return the content of a user message: a string where all is text, else parts."""
    return _content_of(list(_parts(content, path, scope)))


def plain_text(content: Any, path: str, scope: Scope) -> str:
    """Return the content of a message that holds text alone: of the system, of the developer."""
    return joined(_text_alone(part, path, scope) for part in _parts(content, path, scope))


def answer_text(part: Any, path: str, scope: Scope) -> str:
    """Return the text of one part of an assistant message. A refusal is what was said, so it is text."""
    if isinstance(part, str):
        return part
    held = record(part, path)
    kind = held.get("type")
    if kind == "refusal" or (kind is None and held.get("refusal")):
        scope.report.changed(path, REFUSAL.came, str(REFUSAL.became), REFUSAL.why)
        return text_of(held.get("refusal"))
    if kind == "output_audio":
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
    return _content_of([part for part in parts if isinstance(part, str) or part["type"] in held]), shown


def text_part(text: str) -> ChatPart:
    """Return a text part."""
    return {"type": "text", "text": text}


def joined(texts: Iterable[Any]) -> str:
    """Return texts as one, a line break between them; empty ones leave none."""
    return "\n".join(text for text in texts if text)


Contents: TypeAlias = Callable[[str, Sequence[Any]], Content]
Outputs: TypeAlias = Callable[[Sequence[Any]], tuple[Content, list[ChatPart]]]  # the latter is new


class Odd(LookupError):
    """A part that has not its usual form."""


def usual_content(profile: Profile) -> Contents:
    """Return a reader of contents in their usual form: a list of dicts of which there is nothing to report.

    It takes a role and the list, and raises LookupError, TypeError or AttributeError where the content has any other
    form. It says the same as `user_content`, `plain_text` and `answer_text`, and costs little.
    """
    return _usual_content(profile.images, profile.files, profile.audio)


@cache
def _usual_content(images: bool, files: bool, audio: bool) -> Contents:
    usual = _usual_media(images, files, audio)

    def read(role: str, content: Any) -> Content:
        if content.__class__ is not list:
            raise Odd
        if len(content) == 1 and content[0]["type"] in SPOKEN:
            return _usual_text(content[0])
        parts: list[ChatPart] = []
        media = False
        for part in content:
            kind = part["type"]
            if kind == "input_text" or kind in SPOKEN:
                text = part["text"]
                if text.__class__ is not str or not text or BREAKPOINT in part:
                    raise Odd
                parts.append({"type": "text", "text": text})
                continue
            media = True
            if kind == "input_image" and images:  # as `_usual_image`, without the call: users show images
                url = part["image_url"]
                if url.__class__ is not str or not url or BREAKPOINT in part:
                    raise Odd
                detail = part.get("detail")
                if detail is None:
                    parts.append({"type": "image_url", "image_url": {"url": url}})
                elif detail in DETAILS:
                    parts.append({"type": "image_url", "image_url": {"url": url, "detail": detail}})
                else:
                    raise Odd
            else:
                parts.append(usual[kind](part))
        if not media:
            return "\n".join([part["text"] for part in parts])
        if role == "user":
            return parts
        raise Odd

    return read


def usual_output(profile: Profile) -> Outputs:
    """Return a reader of what tools gave back in its usual form, as `tool_content` reads it in any form."""
    return _usual_output(profile.images, profile.files, profile.audio, profile.tool_parts)


@cache
def _usual_output(images: bool, files: bool, audio: bool, held: frozenset[str]) -> Outputs:
    usual = _usual_media(images, files, audio)

    def read(output: Any) -> tuple[Content, list[ChatPart]]:
        if output.__class__ is not list:
            raise Odd
        said = ""
        more: list[str] = []  # texts after the first
        media: list[ChatPart] = []
        for part in output:
            kind = part["type"]
            if kind == "input_text" or kind in SPOKEN:
                text = part["text"]
                if text.__class__ is not str or BREAKPOINT in part:
                    raise Odd
                if not said:
                    said = text
                elif text:
                    more.append(text)
            else:
                media.append(usual[kind](part))
        if more:
            said = "\n".join([said, *more])
        if not held or not media:
            return said, media
        return _kept(output, media, held), [part for part in media if part["type"] not in held]

    return read


def _kept(output: Iterable[Json], media: Iterable[ChatPart], held: frozenset[str]) -> Content:
    """Return what a tool message holds of an output whose media are read: parts in their order, or a string."""
    made = iter(media)
    parts: list[Part] = [part["text"] if part["type"] in SPOKEN else next(made) for part in output]
    return _content_of([part for part in parts if isinstance(part, str) or part["type"] in held])


def _usual_media(images: bool, files: bool, audio: bool) -> dict[str, Callable[[Json], ChatPart]]:
    """Return the readers of the media that a backend takes."""
    taken = {"input_image": images, "input_file": files, "input_audio": audio}
    return {kind: read for kind, read in USUAL.items() if taken[kind]}


def _content_of(parts: list[Part]) -> Content:
    """Return a string where all is text, else parts, without empty texts."""
    if all(isinstance(part, str) for part in parts):
        return joined(parts)
    return [text_part(part) if isinstance(part, str) else part for part in parts if part]


def _is_content(listed: list[Any]) -> bool:
    """Return whether the list of a tool's output is content, and not some JSON of the tool's own: one with media is."""
    kinds = {word(record(one, "").get("type")) for one in listed if is_object(one)}
    texts = all(isinstance(one, str) or _is_part(one) for one in listed)
    return bool(kinds & MEDIA.keys()) or (texts and bool(kinds)) or not listed


def _told(one: Any) -> ChatPart:
    return text_part(json.dumps(plain(one), ensure_ascii=False))


def _is_part(one: Any) -> bool:
    """Return whether an entry of a tool's output is a content part, and not some JSON of the tool's own."""
    kind = record(one, "").get("type") if is_object(one) else None
    return isinstance(kind, str) and (kind in TEXTS or kind in MEDIA)


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
        return text_of(held.get("text"))
    if isinstance(kind, str) and kind in MEDIA:
        return MEDIA[kind](held, path, scope)
    if not isinstance(kind, str):
        raise BadRequest(f"{path}.type", f"the type of a content part is expected, and here is {described(kind)}")
    return _note(f"{kind} left out", kind, path, scope, "chat has no such content part")


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


def _usual_text(held: Json) -> str:
    text: Any = held["text"]
    if text.__class__ is not str or BREAKPOINT in held:
        raise Odd
    return text


def _usual_image(held: Json) -> ChatPart:
    url, detail = held["image_url"], held.get("detail")
    if url.__class__ is not str or not url or BREAKPOINT in held:
        raise Odd
    if detail is None:
        return {"type": "image_url", "image_url": {"url": url}}
    if detail not in DETAILS:
        raise Odd
    return {"type": "image_url", "image_url": {"url": url, "detail": detail}}


def _file(held: Json, path: str, scope: Scope) -> Part:
    """Source: `file` parts of the Chat Completions API, which have no URLs."""
    inner = record(held["file"], path) if is_object(held.get("file")) else held
    name = text_of(inner.get("filename")) or text_of(inner.get("file_url")) or "without name"
    file = {key: inner[key] for key in ("filename", "file_data", "file_id") if inner.get(key)}
    if not scope.profile.files:
        why = f"profile {scope.profile.name!r} takes no files"
        return _note(f"file left out: {name}", "a file", path, scope, why)
    if not file.keys() & {"file_data", "file_id"}:
        return _note(f"file left out: {name}", "a file by URL", path, scope, "chat takes files by data or id alone")
    return {"type": "file", "file": file}


def _usual_file(held: Json) -> ChatPart:
    name, data = held["filename"], held["file_data"]
    if len(held) != 3 or not name or not data:
        raise Odd
    return {"type": "file", "file": {"filename": name, "file_data": data}}


def _audio(held: Json, path: str, scope: Scope) -> Part:
    given = held.get("input_audio")
    audio = record(given, f"{path}.input_audio") if given is not None else held
    if not scope.profile.audio:
        return _note("audio left out", "audio", path, scope, f"profile {scope.profile.name!r} takes no audio")
    return {
        "type": "input_audio",
        "input_audio": {"data": text_of(audio.get("data")), "format": audio.get("format") or "wav"},
    }


def _usual_audio(held: Json) -> ChatPart:
    given = held["input_audio"]
    data, form = given["data"], given["format"]
    if BREAKPOINT in held or data.__class__ is not str or form.__class__ is not str:
        raise Odd
    return {"type": "input_audio", "input_audio": {"data": data, "format": form}}


USUAL: dict[str, Callable[[Json], ChatPart]] = {
    "input_image": _usual_image,
    "input_file": _usual_file,
    "input_audio": _usual_audio,
}
MEDIA: dict[str, Callable[[Json, str, Scope], Part]] = {
    "input_image": _image,
    "image_url": _image,
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
