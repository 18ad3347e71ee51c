"""What a function is called, and what its docstring says of it, in Google's, NumPy's or Sphinx's style."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from textwrap import indent
from typing import Any, Literal, TypeAlias, get_args

from antiphon.exceptions import UserError
from antiphon.logger import logger

DocstringStyle: TypeAlias = Literal["google", "numpy", "sphinx"]

# A docstring that is such a section from its first line on: the indent of the section is that of all other lines.
BARE = re.compile(r"(?i)(args|arguments|params|parameters):[ \t]*\n(?=\S)")
# A Google section that has no blank line above it; griffe takes such a one for text.
GLUED = re.compile(r"(?im)(?<=[^\n])\n(?=(?:args|arguments|params|parameters):[ \t]*\n[ \t])")
# A field of Sphinx's; griffe wants two of them to know the style.
FIELD = re.compile(r"(?m)^[ \t]*:(?:param|parameter|arg|argument|key|keyword|type|returns?|rtype|raises?)\b[^:\n]*:")
# Kinds of sections that describe parameters; the second is what NumPy and Google have for rare ones and keywords.
PARAMETERS = ("parameters", "other parameters")


@dataclass
class FuncDocumentation:
    """A function's name, what its docstring says first, and what it says of each parameter."""

    name: str
    description: str | None = None
    param_descriptions: dict[str, str] | None = field(default=None)


def generate_func_documentation(func: Callable[..., Any], style: DocstringStyle | None = None) -> FuncDocumentation:
    """Return what the docstring of `func` says. Without `style` it is found out; what is in none is Google's."""
    name = name_of(func)
    text = inspect.getdoc(said_by(func))
    if not text:
        return FuncDocumentation(name)
    if style not in (None, *get_args(DocstringStyle)):
        raise UserError(
            f"the docstring_style is {style!r}: {', '.join(get_args(DocstringStyle))}, or None to find it out"
        )
    sections = _sections(text, style)
    description = next((one.value for one in sections if one.kind.value == "text"), None)
    described = {
        parameter.name.lstrip("\\*"): parameter.description
        for one in sections
        if one.kind.value in PARAMETERS
        for parameter in one.value
    }
    return FuncDocumentation(name, description, described or None)


def said_by(func: Callable[..., Any]) -> Any:
    """Return what has the annotations and the docstring of `func`: what a partial calls, an object's `__call__`."""
    inner = getattr(func, "func", func)  # functools.partial has it
    return inner if inspect.isroutine(inner) or inspect.isclass(inner) else type(inner).__call__


def name_of(func: Callable[..., Any]) -> str:
    """Return the name of a function, of what a partial calls, or of an object's class."""
    inner = getattr(func, "func", func)  # functools.partial has it
    return str(getattr(inner, "__name__", type(inner).__name__))


def function_style(name: str, *, warn_on_whitespace: bool = True) -> str:
    """Return `name` as a function's: lower case, every other character than letters, digits and `_` made a `_`.

    What changes is logged as a warning, case alone excepted, and white space where it is not worth one.
    """
    spaced = re.sub(r"\s", "_", name)
    made = re.sub(r"[^a-zA-Z0-9_]", "_", spaced)
    if made != (name if warn_on_whitespace else spaced):
        logger.warning(
            "the tool name %r has characters that a function's name has not: it is %r; letters, digits and _ stay",
            name,
            made.lower(),
        )
    return made.lower()


def _sections(text: str, style: DocstringStyle | None) -> list[Any]:
    import griffe  # takes a while: loaded for the first docstring

    if bare := BARE.match(text):
        text = bare[0] + indent(text[bare.end() :], "    ")
    spaced = GLUED.sub("\n\n", text)
    docstring = griffe.Docstring("\n" + spaced, lineno=1)  # griffe strips the indent of all lines but the first
    told = style or griffe.infer_docstring_style(docstring)[0] or ("sphinx" if FIELD.search(spaced) else "google")
    return list(griffe.parse(docstring, told, warnings=False))
