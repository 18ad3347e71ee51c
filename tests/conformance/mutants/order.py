"""Events that are missing, said twice, or said in the wrong order."""

from __future__ import annotations

from .ways import Kind, drop, duplicate, kind, swap
from .words import (
    ADDED,
    ANNOTATION,
    CALL_DELTA,
    CALL_DONE,
    DONE,
    DONES,
    FAILED,
    PART_ADDED,
    PART_DONE,
    PARTED,
    SUMMARY_ADDED,
    SUMMARY_DELTA,
    SUMMARY_DONE,
    TERMINALS,
    TEXT_DELTA,
    TEXT_DONE,
    short,
)

# event type -> the areas that miss it, or see it twice
FACES = {
    "response.created": "STR",
    "response.in_progress": "STR",
    ADDED: "ITM",
    PART_ADDED: "PRT",
    TEXT_DELTA: "DLT",
    TEXT_DONE: "PRT",
    ANNOTATION: "PRT DLT",
    "response.refusal.delta": "DLT",
    "response.refusal.done": "PRT",
    PART_DONE: "PRT",
    SUMMARY_ADDED: "PRT",
    SUMMARY_DELTA: "DLT",
    "response.reasoning_summary_text.done": "PRT",
    SUMMARY_DONE: "PRT",
    "response.reasoning_text.delta": "DLT",
    "response.reasoning_text.done": "PRT",
    CALL_DELTA: "CAL DLT",
    CALL_DONE: "CAL",
    "response.custom_tool_call_input.delta": "CAL DLT",
    "response.custom_tool_call_input.done": "CAL",
    DONE: "ITM",
    "error": "END STR",
}
# neighbours -> the areas that see them the wrong way round
SWAPS: dict[tuple[str | tuple[str, ...], str | tuple[str, ...]], str] = {
    ("response.created", "response.in_progress"): "STR",
    ("response.queued", "response.in_progress"): "STR",
    ("response.in_progress", ADDED): "STR ITM",
    ("response.in_progress", (*TERMINALS, "error")): "STR",
    (ADDED, PART_ADDED): "ITM",
    (ADDED, SUMMARY_ADDED): "ITM",
    (ADDED, CALL_DELTA): "ITM",
    (ADDED, DONE): "ITM",
    (PART_ADDED, PARTED): "PRT",
    (SUMMARY_ADDED, SUMMARY_DELTA): "PRT",
    (PARTED, DONES): "PRT DLT",
    (CALL_DELTA, CALL_DONE): "CAL DLT",
    ("response.custom_tool_call_input.delta", "response.custom_tool_call_input.done"): "CAL DLT",
    (ANNOTATION, TEXT_DONE): "PRT ITM",
    (ANNOTATION, ANNOTATION): "PRT DLT",
    (DONES, PART_DONE): "PRT",
    (DONES, SUMMARY_DONE): "PRT",
    (PART_DONE, PART_ADDED): "PRT",
    (SUMMARY_DONE, SUMMARY_ADDED): "PRT",
    (PART_DONE, DONE): "PRT ITM",
    (SUMMARY_DONE, DONE): "PRT ITM",
    ((CALL_DONE, "response.custom_tool_call_input.done"), DONE): "CAL ITM",
    (DONE, ADDED): "ITM",
    (DONE, TERMINALS): "ITM STR END",
    (DONE, "error"): "ITM STR END",
    ("error", FAILED): "STR END",
}
ORDER_KINDS: tuple[Kind, ...] = (
    *(kind(f"{short(type)} dropped", areas, drop(type)) for type, areas in FACES.items()),
    *(kind(f"{short(type)} twice", areas, duplicate(type)) for type, areas in FACES.items()),
    *(kind(f"{short(one)} after {short(two)}", areas, swap(one, two)) for (one, two), areas in SWAPS.items()),
)
