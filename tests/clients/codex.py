"""Codex, as npm installs it, run once in an empty git repository with a home of its own, against a gateway."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent / "node"
INSTALLED = Path(os.environ.get("ANTIPHON_NODE_CLIENTS", HERE))  # where `npm install` was run on node/package.json
COMMAND = INSTALLED / "node_modules" / ".bin" / "codex"

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node on this machine")
needs_codex = pytest.mark.skipif(
    not COMMAND.exists(),
    reason="Codex is not installed: npm install in a copy of tests/clients/node, ANTIPHON_NODE_CLIENTS names it",
)
# What makes its request small: a model with a short context takes it then.
SHORT = (
    "include_permissions_instructions=false",
    "include_environment_context=false",
    "include_apps_instructions=false",
    "features.multi_agent=false",
    "features.goals=false",
)


@dataclass(frozen=True)
class Done:
    """What became of a run: its exit status, the items it reported as finished, and the files in the repository."""

    status: int
    items: list[dict[str, Any]]
    files: dict[str, str]
    errors: str

    def said(self) -> list[str]:
        """Return the messages of the agent."""
        return [item["text"] for item in self.items if item["type"] == "agent_message"]

    def kinds(self) -> list[str]:
        """Return what was done, in order; errors are remarks of Codex about the model."""
        return [item["type"] for item in self.items if item["type"] != "error"]


async def codex(url: str, model: str, prompt: str, folder: Path, *options: str, instructions: str = "") -> Done:
    """Run `codex exec` to its end, a minute at most."""
    home, repository = folder / "home", folder / "repository"
    home.mkdir()
    repository.mkdir()
    subprocess.run(["git", "init", "--quiet", str(repository)], check=True)  # noqa: ASYNC221 -- it takes no time
    provider = f'{{name="antiphon", base_url="{url}/v1", wire_api="responses", env_key="ANTIPHON_TEST_KEY"}}'
    settings = ['model_provider="antiphon"', f"model_providers.antiphon={provider}"]
    if instructions:
        (folder / "instructions.md").write_text(instructions)
        settings += [f'model_instructions_file="{folder / "instructions.md"}"', *SHORT]
    process = await asyncio.create_subprocess_exec(
        str(COMMAND),
        *("exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "--model", model),
        *(word for setting in settings for word in ("--config", setting)),
        *options,
        prompt,
        cwd=repository,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "CODEX_HOME": str(home), "ANTIPHON_TEST_KEY": "k"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), 60)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    events = [json.loads(line) for line in out.decode().splitlines() if line.startswith("{")]
    files = {one.name: one.read_text() for one in repository.iterdir() if one.is_file()}
    finished = [event["item"] for event in events if event["type"] == "item.completed"]
    return Done(process.returncode or 0, finished, files, out.decode()[-2000:] + err.decode()[-2000:])
