"""What a tool may return beside text: parts that the model gets as text, as an image or as a file."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypeAlias

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, model_validator
from typing_extensions import TypedDict

from .reading import Json, is_dict, is_list


class ToolOutputText(BaseModel):
    """A part that the model gets as text."""

    type: Literal["text"] = "text"
    text: str


class ToolOutputImage(BaseModel):
    """A part that the model gets as an image: by URL (also a data URL), or by the id of an uploaded file."""

    type: Literal["image"] = "image"
    image_url: str | None = None
    file_id: str | None = None
    detail: Literal["low", "high", "auto"] | None = None

    @model_validator(mode="after")
    def _has_a_source(self) -> ToolOutputImage:
        if self.image_url is None and self.file_id is None:
            raise ValueError("an image has image_url or file_id")
        return self


class ToolOutputFileContent(BaseModel):
    """A part that the model gets as a file: base64 data with a name, a URL, or the id of an uploaded file."""

    type: Literal["file"] = "file"
    file_data: str | None = None
    file_url: str | None = None
    file_id: str | None = None
    filename: str | None = None

    @model_validator(mode="after")
    def _has_a_source(self) -> ToolOutputFileContent:
        if self.file_data is None and self.file_url is None and self.file_id is None:
            raise ValueError("a file has file_data, file_url or file_id")
        return self


class ToolOutputTextDict(TypedDict, total=False):
    """`ToolOutputText` as a dict."""

    type: Literal["text"]
    text: str


class ToolOutputImageDict(TypedDict, total=False):
    """`ToolOutputImage` as a dict."""

    type: Literal["image"]
    image_url: NotRequired[str]
    file_id: NotRequired[str]
    detail: NotRequired[Literal["low", "high", "auto"]]


class ToolOutputFileContentDict(TypedDict, total=False):
    """`ToolOutputFileContent` as a dict."""

    type: Literal["file"]
    file_data: NotRequired[str]
    file_url: NotRequired[str]
    file_id: NotRequired[str]
    filename: NotRequired[str]


ToolOutputPart: TypeAlias = ToolOutputText | ToolOutputImage | ToolOutputFileContent

_PART: TypeAdapter[ToolOutputPart] = TypeAdapter(Annotated[ToolOutputPart, Field(discriminator="type")])


def output_payload(output: Any) -> str | list[Json]:
    """Return the `output` of a call's output item for what a tool returned.

    A string as it is; parts, their dicts and lists of them as the API's content parts; all else as its `str()`.
    """
    if isinstance(output, str):
        return output
    many = output if is_list(output) else [output]
    parts = [part_of(one) for one in many]
    found = [content(part) for part in parts if part is not None]
    return found if found and len(found) == len(parts) else words_of(output)


def words_of(value: Any) -> str:
    """Return the `str()` of a value. Where it has none, as a number of too many digits, that is said instead."""
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001  # another's `__str__` may raise anything, and no run is to end by it
        return f"(a value of the type {type(value).__name__}, which has no text: {type(error).__name__})"


def part_of(value: Any) -> ToolOutputPart | None:
    """Return the part that `value` is, also as a dict; None where it is none."""
    if isinstance(value, ToolOutputText | ToolOutputImage | ToolOutputFileContent):
        return value
    try:
        return _PART.validate_python(value) if is_dict(value) else None
    except ValidationError:
        return None


def content(part: ToolOutputPart) -> Json:
    """Return the part as the API's content part, without what it does not say."""
    return {"type": f"input_{part.type}", **part.model_dump(exclude={"type"}, exclude_none=True)}
