"""`LitellmModel`: one model through LiteLLM."""

from __future__ import annotations

from antiphon.models.sdks import LitellmModel

__all__ = ["LitellmModel"]
