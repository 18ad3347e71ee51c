"""`ChatCmplStreamHandler`, under the module name of openai-agents."""

from __future__ import annotations

from antiphon.stream.handler import ChatCmplStreamHandler

__all__ = ["ChatCmplStreamHandler"]
