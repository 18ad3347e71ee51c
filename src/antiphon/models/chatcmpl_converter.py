"""`Converter`, under the module name of openai-agents."""

from __future__ import annotations

from antiphon.integrations.converter import Converter

__all__ = ["Converter"]
