"""What agents that hand over to others should be told of it."""

from __future__ import annotations

__all__ = ["RECOMMENDED_PROMPT_PREFIX", "prompt_with_handoff_instructions"]

RECOMMENDED_PROMPT_PREFIX = (
    "# System context\n"
    "You are one of several agents that share a conversation. Each agent has instructions and tools of its own, and "
    "may let another go on with the conversation: it calls a handoff function, usually named "
    "`transfer_to_<agent_name>`. The user sees none of this, so do not speak of agents or of handing over.\n"
)


def prompt_with_handoff_instructions(prompt: str) -> str:
    """Return `prompt` with the recommended text before it."""
    return f"{RECOMMENDED_PROMPT_PREFIX}\n\n{prompt}"
