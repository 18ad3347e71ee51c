"""A function's parameters as a schema."""

from __future__ import annotations

from .tools.docstrings import DocstringStyle, FuncDocumentation, generate_func_documentation
from .tools.schema import FuncSchema, function_schema

__all__ = [
    "DocstringStyle",
    "FuncDocumentation",
    "FuncSchema",
    "function_schema",
    "generate_func_documentation",
]
