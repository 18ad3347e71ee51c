"""Deterministic models for tests of agents: `ScriptedModel` says what it was told to, and keeps what it was asked."""

from .model import (
    InvalidModelStep,
    ModelCall,
    ModelScriptError,
    ModelStep,
    ScriptedModel,
    UnconsumedModelSteps,
    UnexpectedModelCall,
    assistant_message,
    function_call,
    reasoning_item,
)

__all__ = [
    "InvalidModelStep",
    "ModelCall",
    "ModelScriptError",
    "ModelStep",
    "ScriptedModel",
    "UnconsumedModelSteps",
    "UnexpectedModelCall",
    "assistant_message",
    "function_call",
    "reasoning_item",
]
