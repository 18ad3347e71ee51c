"""Content parts as `Converter` gives them: one chat part for each, and UserError for what chat has no part for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from antiphon.exceptions import UserError
from antiphon.stream.chunk import fields, is_object

Part = dict[str, Any]

DETAILS = {"original": "high"}  # a level that chat does not have -> the nearest that it has


def extract_all_content(content: str | Iterable[Any]) -> str | list[Part]:
    """Return the content as chat has it: a string as it is, else its parts. Raises UserError for other parts."""
    if isinstance(content, str):
        return content
    return [_part(one) for one in content]


def extract_text_content(content: str | Iterable[Any]) -> str | list[Part]:
    """Return the text alone: other parts that chat has are left out. Raises UserError for a video."""
    found = extract_all_content(content)
    if isinstance(found, str):
        return found
    for part in found:
        if part["type"] == "video_url":
            raise UserError(f"Only text content is supported here, got: {part}")
    return [part for part in found if part["type"] == "text"]


def _part(one: Any) -> Part:
    held: Part = one if type(one) is dict else dict(fields(one)) if is_object(one) else {}  # pyright: ignore[reportUnknownVariableType]
    make = PARTS.get(str(held.get("type")))
    if make is None:
        raise UserError(f"Unknown content: {one}")
    made = make(held)
    if held.get("prompt_cache_breakpoint") is not None:
        made["prompt_cache_breakpoint"] = held["prompt_cache_breakpoint"]
    return made


def _text(held: Part) -> Part:
    if not isinstance(held.get("text"), str):
        raise UserError(f"Only text content is supported here, got: {held}")
    return {"type": "text", "text": held["text"]}


def _image(held: Part) -> Part:
    given: Any = held.get("image_url")
    nested: Mapping[str, Any] = fields(given) if is_object(given) else {}
    url: Any = nested.get("url") or given
    if not isinstance(url, str) or not url:
        raise UserError(f"Only image URLs are supported for {held['type']} {held}")
    detail: Any = held.get("detail") or nested.get("detail") or "auto"
    return {"type": "image_url", "image_url": {"url": url, "detail": DETAILS.get(detail, detail)}}


def _video(held: Part) -> Part:
    url = fields(held.get("video_url")).get("url")
    if not url:
        raise UserError(f"Only video URLs are supported for video_url {held}")
    return {"type": "video_url", "video_url": {"url": url}}


def _audio(held: Part) -> Part:
    audio = fields(held.get("input_audio"))
    if not audio.get("data") or not audio.get("format"):
        raise UserError(f"input_audio requires both data and format {held}")
    return {"type": "input_audio", "input_audio": {"data": audio["data"], "format": audio["format"]}}


def _file(held: Part) -> Part:
    key = next((key for key in ("file_data", "file_id") if held.get(key)), None)
    if key is None:
        raise UserError(f"Only file_data or file_id is supported for input_file {held}")
    name = {"filename": held["filename"]} if held.get("filename") else {}
    return {"type": "file", "file": {key: held[key], **name}}


PARTS: dict[str, Callable[[Part], Part]] = {
    "input_text": _text,
    "text": _text,
    "input_image": _image,
    "image_url": _image,
    "video_url": _video,
    "input_audio": _audio,
    "input_file": _file,
}
