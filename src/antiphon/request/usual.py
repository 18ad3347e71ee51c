"""The content of messages and tool outputs in its usual form, as `content` reads it in any form: it costs little."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, TypeAlias

from antiphon.profile import Profile

from .content import BREAKPOINT, ChatPart, Content, Odd, Part, content_of
from .read import Json

DETAILS = frozenset({"auto", "low", "high"})  # Source: `ImageURL.detail` of openai's chat types
SPOKEN = frozenset({"input_text", "text", "output_text"})  # the usual ones of `TEXTS`
Contents: TypeAlias = Callable[[str, Sequence[Any]], Content]
Outputs: TypeAlias = Callable[[Sequence[Any]], tuple[Content, list[ChatPart]]]  # the latter is new


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
    return content_of([part for part in parts if isinstance(part, str) or part["type"] in held])


def _usual_media(images: bool, files: bool, audio: bool) -> dict[str, Callable[[Json], ChatPart]]:
    """Return the readers of the media that a backend takes."""
    taken = {"input_image": images, "input_file": files, "input_audio": audio}
    return {kind: read for kind, read in USUAL.items() if taken[kind]}


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


def _usual_file(held: Json) -> ChatPart:
    name, data = held["filename"], held["file_data"]
    if len(held) != 3 or not name or not data or name.__class__ is not str or data.__class__ is not str:
        raise Odd
    return {"type": "file", "file": {"filename": name, "file_data": data}}


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
