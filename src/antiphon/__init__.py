"""Any Chat Completions backend, sung as the OpenAI Responses event stream.

    chunk -> Normalizer -> Delta -> Assembler -> event -> (conformance | runner | gateway)

`ChatCmplStreamHandler` is the sans-IO core: chunks in, canonical events out. `convert`, `aconvert`, `to_response`,
`convert_sse` and `aconvert_sse` are its shells. Names are loaded when first used, so that `import antiphon` costs
little; `openai` is imported only where openai objects are asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import AntiphonError, BadInput, ProfileNotFound, SourceError, StrictError
    from .profile import Profile, Quirk, find_profile, load_profile
    from .stream.accumulate import accumulate
    from .stream.handler import (
        AnyLLMChatCmplStreamHandler,
        ChatCmplStreamHandler,
        LiteLLMChatCmplStreamHandler,
        OpenAIChatCmplStreamHandler,
        aconvert,
        aconvert_sse,
        convert,
        convert_sse,
    )
    from .stream.whole import to_response

__version__ = "0.1.0"

# public name -> the module that has it
_HOMES: dict[str, str] = {
    **dict.fromkeys(("AntiphonError", "BadInput", "ProfileNotFound", "SourceError", "StrictError"), ".errors"),
    **dict.fromkeys(("Profile", "Quirk", "find_profile", "load_profile"), ".profile"),
    "accumulate": ".stream.accumulate",
    **dict.fromkeys(
        (
            "AnyLLMChatCmplStreamHandler",
            "ChatCmplStreamHandler",
            "LiteLLMChatCmplStreamHandler",
            "OpenAIChatCmplStreamHandler",
            "aconvert",
            "aconvert_sse",
            "convert",
            "convert_sse",
        ),
        ".stream.handler",
    ),
    "to_response": ".stream.whole",
}

__all__ = [
    "AntiphonError",
    "AnyLLMChatCmplStreamHandler",
    "BadInput",
    "ChatCmplStreamHandler",
    "LiteLLMChatCmplStreamHandler",
    "OpenAIChatCmplStreamHandler",
    "Profile",
    "ProfileNotFound",
    "Quirk",
    "SourceError",
    "StrictError",
    "accumulate",
    "aconvert",
    "aconvert_sse",
    "convert",
    "convert_sse",
    "find_profile",
    "load_profile",
    "to_response",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'antiphon' has no attribute {name!r}")
    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
