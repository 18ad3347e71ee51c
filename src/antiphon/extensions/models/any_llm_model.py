"""`AnyLLMModel`: one model through any-llm."""

from __future__ import annotations

from antiphon.models.sdks import AnyLLMModel

__all__ = ["AnyLLMModel"]
