"""Prompts that are stored at the provider. They live in `antiphon.run.agent`."""

from .run.agent import DynamicPromptFunction, GenerateDynamicPromptData, Prompt

__all__ = ["DynamicPromptFunction", "GenerateDynamicPromptData", "Prompt"]
