"""The Open Responses compliance tests, as the package llm-comply runs them, over the replay backend."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from antiphon.gateway import create_app

from .conftest import listening

pytest.importorskip("llm_comply", reason="llm-comply is not installed")

RUN = "from llm_comply.cli import main; main()"


@pytest.mark.parametrize(("model", "which"), [("echo", ()), ("gpt-5", ("-f", "reasoning-summary"))])
async def test_open_responses(model: str, which: tuple[str, ...]) -> None:
    """All of its tests pass; that of reasoning is run for models with OpenAI's names alone."""
    async with listening(create_app({"aliases": {"gpt-5": "replay/reasoning"}})) as url:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", RUN, "run", "-u", f"{url}/v1", "-k", "none", "-m", model, "--json", *which),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(120):
            printed, errors = await process.communicate()
    assert printed, errors.decode()
    results = json.loads(printed)["results"]
    left = {one["id"]: one for one in results if one["status"] != "passed"}
    assert list(left) == ([] if which else ["reasoning-summary"])
    assert len(results) == 1 if which else len(results) > 8
