"""`LitellmProvider`: models through LiteLLM."""

from __future__ import annotations

from antiphon.models.sdks import LitellmProvider

__all__ = ["LitellmProvider"]
