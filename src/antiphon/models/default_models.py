"""The default model, under the module name of openai-agents."""

from __future__ import annotations

from .defaults import get_default_model

__all__ = ["get_default_model"]
