"""What a JSON value is, as both type checkers understand it; and which options there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeGuard, TypeVar

from antiphon.exceptions import UserError
from antiphon.stream.chunk import plain

Json: TypeAlias = dict[str, Any]
P = ParamSpec("P")
Self = TypeVar("Self")
Given = TypeVar("Given")
T = TypeVar("T")


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Return whether `value` is a list."""
    return isinstance(value, list)


def is_dict(value: object) -> TypeGuard[Json]:
    """Return whether `value` is a dict; JSON's have strings as keys."""
    return isinstance(value, dict)


def said(**values: Any) -> Json:
    """Return the values that are not None, as JSON data."""
    return {name: plain(value) for name, value in values.items() if value is not None}


def expect(given: object, kind: type[Any], what: str, expects: str) -> None:
    """Raise UserError where what a caller gave is no `kind`."""
    if not isinstance(given, kind):
        raise UserError(f"{what} is {type(given).__name__}: {expects} is expected")


def refuse_unknown(what: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise TypeError for an option that is none."""
    unknown = sorted(name for name in given if name not in known)
    if unknown:
        raise TypeError(f"{what} has no option {', '.join(unknown)}; there are: {', '.join(sorted(known))}")


def takes(options: Callable[P, Given]) -> Callable[[Callable[[Self, Given], T]], Callable[Concatenate[Self, P], T]]:
    """Return a decorator: a method of options that are one object is called with what makes that object."""

    def of(method: Callable[[Self, Given], T]) -> Callable[Concatenate[Self, P], T]:
        asked = signature(options)

        @wraps(method)
        def called(self: Self, /, *given: P.args, **named: P.kwargs) -> T:
            try:
                asked.bind(*given, **named)
            except TypeError as error:
                raise TypeError(f"{method.__name__}: {error}; it takes {', '.join(asked.parameters)}") from None
            return method(self, options(*given, **named))

        own = signature(method)
        shown = [*list(own.parameters.values())[:1], *asked.parameters.values()]
        called.__dict__["__signature__"] = own.replace(parameters=shown)
        return called

    return of
