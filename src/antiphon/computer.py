"""What a computer tool acts on."""

from __future__ import annotations

from .tools.computer import AsyncComputer, Button, Computer, Environment

__all__ = [
    "AsyncComputer",
    "Button",
    "Computer",
    "Environment",
]
