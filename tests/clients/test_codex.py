"""Codex, unmodified, over the gateway and a strict scripted chat backend: it runs a command, and applies a patch."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra `gateway` is not installed")

from antiphon.gateway import create_app
from tests.gateway.conftest import listening, over
from tests.gateway.scripted_backend import serve_scripted

from .codex import codex, needs_codex, needs_node

pytestmark = [needs_node, needs_codex]

# the model that Codex asks for -> the scenario, what Codex did, what is in the file that it made
TASKS: dict[str, tuple[str, list[str], str]] = {
    "codex-shell": ("codex-shell", ["command_execution", "agent_message"], "made by a shell\n"),
    # Codex offers apply_patch, a freeform tool, to models that it knows by name
    "gpt-5.5": ("codex-patch", ["file_change", "agent_message"], "made by a patch\n"),
}


@pytest.mark.parametrize("model", TASKS)
async def test_codex_does_a_task(model: str, tmp_path: Path) -> None:
    scenario, kinds, content = TASKS[model]
    aliases = {} if model == scenario else {model: scenario}
    async with serve_scripted() as scripted, listening(create_app(over(scripted, aliases=aliases))) as url:
        done = await codex(url, model, "Make a file.", tmp_path)
        assert scripted.refused == []
        roles = [[message["role"] for message in asked["messages"]] for asked in scripted.asked]
    assert (done.status, done.kinds(), done.files) == (0, kinds, {"made.txt": content}), done.errors
    assert done.said()[0].startswith("The tool said: ")
    assert roles == [["developer", "developer", "user", "user", *more] for more in ([], ["assistant", "tool"])]


# Codex has no place for a refusal: it shows nothing of it, whoever sends it
SHOWN: dict[str, list[str]] = {
    "text": ["Hello there!"],
    "reasoning": ["Forty-two."],
    "refusal": [],
    "error-500-then-ok": ["Hello there!"],
}


@pytest.mark.parametrize("scenario", SHOWN)
async def test_codex_shows_what_the_model_said(scenario: str, tmp_path: Path) -> None:
    async with serve_scripted() as scripted, listening(create_app(over(scripted))) as url:
        done = await codex(url, scenario, "Say something.", tmp_path)
        assert scripted.refused == []
    assert done.status == 0, done.errors
    assert done.said() == SHOWN[scenario], done.errors


@pytest.mark.parametrize("scenario", ["length", "error-400", "error-context"])
async def test_codex_is_told_of_what_went_wrong(scenario: str, tmp_path: Path) -> None:
    async with serve_scripted() as scripted, listening(create_app(over(scripted))) as url:
        done = await codex(url, scenario, "Say something.", tmp_path)
    assert done.status == 1
    assert "turn.failed" in done.errors
