"""How to get chunks: over HTTP, through an SDK, or from a recording.

    request (mapping) -> Backend -> pieces of an SSE body | chunks | a whole completion

The core finds these through the entry-point group `antiphon.backends`. Each is a class in a module of its own, which is
imported when it is asked for: the SDKs are slow to load, and optional.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .any_llm import AnyLLMBackend
    from .http import HttpBackend
    from .litellm import LiteLLMBackend
    from .openai_sdk import OpenAISDKBackend
    from .replay import ReplayBackend

# public name -> the module that has it
_HOMES = {
    "AnyLLMBackend": ".any_llm",
    "HttpBackend": ".http",
    "LiteLLMBackend": ".litellm",
    "OpenAISDKBackend": ".openai_sdk",
    "ReplayBackend": ".replay",
}

__all__ = ["AnyLLMBackend", "HttpBackend", "LiteLLMBackend", "OpenAISDKBackend", "ReplayBackend"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home, __name__), name)
