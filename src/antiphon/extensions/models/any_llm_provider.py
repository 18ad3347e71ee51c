"""`AnyLLMProvider`: models through any-llm."""

from __future__ import annotations

from antiphon.models.sdks import AnyLLMProvider

__all__ = ["AnyLLMProvider"]
