"""Faults of the end: statuses, errors, the terminal output, usage."""

from __future__ import annotations

from random import Random
from typing import Any

from .ways import Change, Gone, edit, edit_done, edit_final, ends_with, insert, is_type, items, kind, only, places
from .words import (
    COMPLETED,
    DONE,
    FAILED,
    INCOMPLETE,
    OWN,
    TERMINALS,
    Events,
    all_but_last,
    error,
    longer,
    message,
    terminal,
)

# The end


def status_order(events: Events, rng: Random) -> Events | None:
    """Let a completed item follow an incomplete one."""
    found = [at for at in places(events, DONE) if "status" in events[at]["item"]]
    if events[-1]["type"] == COMPLETED or len(found) < 2:
        return None
    for at, status in ((found[-2], "incomplete"), (found[-1], "completed")):
        item = events[at]["item"]
        item["status"] = status
        terminal(events)["output"][:] = [item if one["id"] == item["id"] else one for one in terminal(events)["output"]]
    return events


def bare_error(events: Events, rng: Random) -> Events | None:
    """Take the message out of both forms of the error."""
    found = places(events, "error")
    if not found:
        return None
    events[found[0]].pop("message", None)
    events[found[0]]["error"].pop("message")
    return events


def edit_output(new: Any, needed: int = 1) -> Change:
    """Return the change that edits the list of the terminal output."""
    return only(lambda events: len(terminal(events)["output"]) >= needed, edit(TERMINALS, "response.output", new))


def renamed_ending(events: Events, rng: Random) -> Events | None:
    """Give the terminal event another type than its response says."""
    events[-1]["type"] = rng.choice([one for one in TERMINALS if one != events[-1]["type"]])
    return events


def other_status(old: str) -> str:
    """Return a terminal status that `old` is not."""
    return "incomplete" if old == "completed" else "completed"


END_KINDS = (
    kind("terminal status is not its type", "END STR", edit(TERMINALS, "response.status", other_status)),
    kind("terminal status in_progress", "END STR", edit(TERMINALS, "response.status", "in_progress")),
    kind("terminal type is not its status", "END STR", renamed_ending),
    kind("incomplete without details", "END", edit(INCOMPLETE, "response.incomplete_details", None)),
    kind("incomplete without a reason", "END SCH", edit(INCOMPLETE, "response.incomplete_details", {})),
    kind("incomplete with a null reason", "END SCH", edit(INCOMPLETE, "response.incomplete_details.reason", None)),
    kind(
        "incomplete with an unknown reason", "END SCH", edit(INCOMPLETE, "response.incomplete_details.reason", "length")
    ),
    kind(
        "completed with incomplete_details",
        "END",
        edit(COMPLETED, "response.incomplete_details", {"reason": "max_output_tokens"}),
    ),
    kind("completed with an error", "END", edit(COMPLETED, "response.error", {"code": "server_error", "message": "x"})),
    kind("error and then completed", "END STR", only(ends_with(COMPLETED, INCOMPLETE), insert(error, -2))),
    kind("error in the middle", "END STR", only(lambda events: bool(items(events)), insert(error, 2))),
    kind("failed without an error object", "END", edit(FAILED, "response.error", None)),
    *(
        kind(f"failed without {key}", "END SCH", edit(FAILED, f"response.error.{key}", Gone))
        for key in ("code", "message")
    ),
    *(
        kind(f"failed with a null {key}", "END SCH", edit(FAILED, f"response.error.{key}", None))
        for key in ("code", "message")
    ),
    kind("error event without a message", "END SCH", bare_error),
    kind("error event flat only", "END", edit("error", "error", Gone), "SHOULD"),
    kind(
        "incomplete item in a completed response",
        "END",
        only(ends_with(COMPLETED), edit_done("status", "incomplete", is_type(*OWN))),
    ),
    kind("completed item after an incomplete one", "END", status_order),
    kind("output without an item", "END", edit_output(lambda old: old[1:])),
    kind("output without the last item", "END", edit_output(lambda old: old[:-1])),
    kind("output emptied", "END", edit_output([])),
    kind("output with an item more", "END", edit_output(lambda old: [*old, message("more")], 0)),
    kind("output with an item twice", "END", edit_output(lambda old: [*old, old[-1]])),
    kind("output reordered", "END", edit_output(lambda old: old[::-1], 2)),
    kind("output with another text", "END DLT", edit_final("content.0.text", longer)),
    kind("output with another refusal", "END DLT", edit_final("content.-1.refusal", longer)),
    kind("output with another summary", "END DLT", edit_final("summary.0.text", longer)),
    kind("output with other arguments", "END CAL", edit_final("arguments", longer)),
    kind("output with another name", "END CAL", edit_final("name", longer)),
    kind("output with another call_id", "END CAL ITM", edit_final("call_id", longer)),
    kind("output with another id", "END ITM", edit_final("id", longer)),
    kind("output with another status", "END", edit_final("status", other_status)),
    kind("output with an annotation lost", "END", edit_final("content.-1.annotations", all_but_last)),
    kind("output is null", "SCH END", edit(TERMINALS, "response.output", None)),
)
