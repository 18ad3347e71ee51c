"""The scenarios of the scripted backend as jobs for clients, and what a user must be shown of each.

`WANTED` holds for all clients; `ASIDE` is where a client shows less or something else by its own design.
"""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from .jobs import PIXEL, Job, Outcome

USED = (11, 7, 18)
PARIS = ("get_weather", {"city": "Paris"})


def said(text: str, **more: Any) -> Outcome:
    return Outcome(text=text, usage=more.pop("usage", USED), **more)


def failed(status: int) -> Outcome:
    """Return what is shown where the client raises: an HTTP status, or 0 for what came in the stream."""
    return Outcome(status=None, error=status)


ONE_CALL = said("The tool said: sunny", calls=(PARIS,))
TWO_CALLS = said("The tool said: sunny; sunny", calls=(PARIS, PARIS))

# scenario -> the job and what comes of it
WANTED: dict[str, tuple[Job, Outcome]] = {
    "text": (Job("text"), said("Hello there!")),
    "tool": (Job("tool", tool="get_weather"), ONE_CALL),
    "text-and-tool": (Job("text-and-tool", tool="get_weather"), ONE_CALL),
    "parallel": (Job("parallel", tool="get_weather"), TWO_CALLS),
    "missing-index": (Job("missing-index", tool="get_weather"), TWO_CALLS),
    "same-index": (Job("same-index", tool="get_weather"), TWO_CALLS),
    "null-index": (Job("null-index", tool="get_weather"), TWO_CALLS),
    "whole-calls": (Job("whole-calls", tool="get_weather"), TWO_CALLS),
    "empty-arguments": (
        Job("empty-arguments", tool="get_season"),
        said("The tool said: sunny", calls=(("get_season", {}),)),
    ),
    "reasoning": (Job("reasoning"), said("Forty-two.", reasoning="Let me think.")),
    "reasoning-tool": (Job("reasoning-tool", tool="get_weather"), ONE_CALL),
    "refusal": (Job("refusal"), said("", refusal="I will not.")),
    "length": (Job("length"), said("This is cut", status="incomplete", reason="max_output_tokens")),
    "content-filter": (Job("content-filter"), said("This is", status="incomplete", reason="content_filter")),
    "structured": (Job("structured", schema=True), said("", object={"city": "Paris", "people": 7})),
    "usage-none": (Job("usage-none"), said("No usage.", usage=None)),
    "usage-finish": (Job("usage-finish"), said("Usage with the finish.")),
    "usage-every": (Job("usage-every"), said("Usage on every chunk.")),
    "error-400": (Job("error-400"), failed(400)),
    "error-429": (Job("error-429"), failed(429)),
    "error-500-then-ok": (Job("error-500-then-ok"), said("Hello there!")),
    "error-mid-stream": (Job("error-mid-stream"), failed(0)),
    "disconnect": (Job("disconnect"), failed(0)),
    "silent": (Job("silent"), said("At last.")),
    "image": (Job("image", "See this.", image=True), said(f"images: ['{PIXEL}']")),
    "history": (Job("history", "And then?"), said("user | And then?")),
}

# (client, scenario, what of the outcome is another), as patterns; the lines that fit are applied in order
ASIDE: list[tuple[str, str, dict[str, Any]]] = [
    # The last response has no reasoning, and those that keep the whole run show that of its first one too.
    ("openai-agents*", "reasoning-tool", {"reasoning": "A tool helps."}),
    ("pydantic-ai*", "reasoning-tool", {"reasoning": "A tool helps."}),
    ("aisdk*", "reasoning-tool", {"reasoning": "A tool helps."}),
    # Not streamed, the gateway answers with a status where the backend fails.
    *(
        (client, name, {"error": 502})
        for client in ("*create", "*parse", "*whole")
        for name in ("error-mid-*", "disconnect")
    ),
    # In the background there is no status to answer with: the response has failed.
    *((client, "error-4*", vars(failed(0))) for client in ("*background", "*resumed")),
    # They raise for what the model did not finish or refused.
    ("openai-agents*", "refusal", vars(failed(0))),
    ("openai-agents*", "length", vars(failed(0))),
    ("openai-agents*", "content-filter", vars(failed(0))),
    ("pydantic-ai*", "refusal", vars(failed(0))),
    # pydantic-ai's run_stream ends with the first text, and says 500 of all that fails in a stream.
    ("pydantic-ai streamed", "text-and-tool", {"text": "Let me look."}),
    ("pydantic-ai streamed", "error-mid-*", {"error": 500}),
    ("pydantic-ai streamed", "disconnect", {"error": 500}),
    # The AI SDK shows a refusal as text that was filtered, and says 500 of all that fails in a stream.
    ("aisdk*", "refusal", {"text": "I will not.", "refusal": "", "status": "incomplete", "reason": "content_filter"}),
    ("aisdk streamed", "error-mid-*", {"error": 500}),
    ("aisdk streamed", "disconnect", {"error": 500}),
    # They count nothing as zero.
    ("openai-agents*", "usage-none", {"usage": (0, 0, 0)}),
    ("pydantic-ai*", "usage-none", {"usage": (0, 0, 0)}),
    # An object comes without the usage.
    ("langchain*", "structured", {"usage": None}),
    ("aisdk*", "structured", {"usage": None}),
]


def wanted(client: str, scenario: str) -> Outcome:
    """Return what a client must show of a scenario."""
    outcome = WANTED[scenario][1]
    for pattern, name, fields in ASIDE:
        if fnmatchcase(client, pattern) and fnmatchcase(scenario, name):
            outcome = replace(outcome, **fields)
    return outcome
