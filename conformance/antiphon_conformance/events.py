"""What each type of event is about, and which role it has there: the data beside the tables of `grammar`.

Source: the recordings under `responses/openai` and `responses/azure-openai`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class Family(NamedTuple):
    """The events of one kind of text. `items` are the types of item that have it; `text` names the field of its
    `.done`; `numbered_by` names the field that says which part it is ("" where the item has one such text)."""

    table: Literal["part", "bare", "hosted"]
    items: tuple[str, ...]
    text: str
    numbered_by: str = ""
    part: str = ""  # the type of the part


FAMILIES: dict[str, Family] = {
    "output_text": Family("part", ("message",), "text", "content_index", "output_text"),
    "refusal": Family("part", ("message",), "refusal", "content_index", "refusal"),
    "reasoning_text": Family("part", ("reasoning",), "text", "content_index", "reasoning_text"),
    "reasoning_summary_text": Family("part", ("reasoning",), "text", "summary_index", "summary_text"),
    "function_call_arguments": Family("bare", ("function_call",), "arguments"),
    "custom_tool_call_input": Family("bare", ("custom_tool_call",), "input"),
    "mcp_call_arguments": Family("hosted", ("mcp_call",), "arguments"),
    "code_interpreter_call_code": Family("hosted", ("code_interpreter_call",), "code"),
    "apply_patch_call_operation_diff": Family("hosted", ("apply_patch_call",), "diff"),
    "shell_call_command": Family("hosted", ("shell_call",), "command", "command_index"),
}

# type of a part -> the family of its text
BY_PART: dict[str, str] = {family.part: name for name, family in FAMILIES.items() if family.part}

# A hosted tool's item -> what it says while it works, in order; each may be left out. Two may be ends: one comes.
HOSTED: dict[str, tuple[str, ...]] = {
    "web_search_call": ("in_progress", "searching", "completed"),
    "file_search_call": ("in_progress", "searching", "completed"),
    "code_interpreter_call": ("in_progress", "interpreting", "completed"),
    "image_generation_call": ("in_progress", "generating", "partial_image", "completed"),
    "mcp_call": ("in_progress", "completed", "failed"),
    "mcp_list_tools": ("in_progress", "completed", "failed"),
}

# The items whose content the assembler of any adapter makes. All other types are hosted tools' or newer.
OWN_ITEMS = ("message", "reasoning", "function_call", "custom_tool_call")
CALLS = ("function_call", "custom_tool_call")


class Place(NamedTuple):
    """What an event is about, and its role there. `family` is a key of FAMILIES, or "" for part.added and part.done.
    `space` is what the numbers of `numbered_by` count in, or the family of a text that has no number."""

    about: Literal["response", "item", "part"]
    role: str
    family: str = ""
    numbered_by: str = ""
    space: str = ""


def _places() -> dict[str, Place]:
    """Return event type -> place, for every type that the tables know."""
    made: dict[str, Place] = {
        **{f"response.{role}": Place("response", role) for role in ("created", "queued", "in_progress", "failed")},
        **{f"response.{role}": Place("response", "ended") for role in ("completed", "incomplete")},
        "error": Place("response", "error"),
        **{f"response.output_item.{role}": Place("item", role) for role in ("added", "done")},
        **{f"response.{item}.{role}": Place("item", "event") for item, roles in HOSTED.items() for role in roles},
        **{f"response.shell_call_output_content.{role}": Place("item", "event") for role in ("delta", "done")},
        "response.output_text.annotation.added": _of_part("annotation", "output_text", "content_index"),
        "response.shell_call_command.added": _of_part("added", "shell_call_command", "command_index"),
    }
    for part, index in (("content_part", "content_index"), ("reasoning_summary_part", "summary_index")):
        made[f"response.{part}.added"] = _of_part("added", "", index)
        made[f"response.{part}.done"] = _of_part("part_done", "", index)
    for name, family in FAMILIES.items():
        made[f"response.{name}.delta"] = _of_part("delta", name, family.numbered_by)
        made[f"response.{name}.done"] = _of_part("text_done", name, family.numbered_by)
    return made


def _of_part(role: str, family: str, numbered_by: str) -> Place:
    return Place("part", role, family, numbered_by, numbered_by or family)


PLACES: dict[str, Place] = _places()
HEAD = ("response.created", "response.queued", "response.in_progress")
TERMINALS = ("response.completed", "response.incomplete", "response.failed")

# Types that the recordings have and the installed openai types do not, or that say nothing of the response.
NEWER = (
    "keepalive",
    "response.apply_patch_call_operation_diff.delta",
    "response.apply_patch_call_operation_diff.done",
)
SILENT = ("keepalive",)
