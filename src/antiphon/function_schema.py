"""A function's parameters as a schema."""

from __future__ import annotations

from .run.docstrings import DocstringStyle, FuncDocumentation, generate_func_documentation
from .run.schema import FuncSchema, function_schema

__all__ = [
    "DocstringStyle",
    "FuncDocumentation",
    "FuncSchema",
    "function_schema",
    "generate_func_documentation",
]
