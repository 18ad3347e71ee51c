"""What is wrong with settings, in words by which a reader can mend it: which, whence, what is allowed, what was meant.

Values are never shown: they may be keys.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, get_args

from pydantic import BaseModel, ValidationError

from antiphon.near import LIKE, nearest
from antiphon.stream.faults import redact

Place: TypeAlias = tuple[str | int, ...]  # of a setting: the tables from the outside, its name, its place in a list
Tables: TypeAlias = dict[str, type[BaseModel]]  # by what they are called in a file; "" is the file itself

NEARER = 0.8  # than LIKE: of a name that is right in another table
NAME = "NAME"  # stands for what a user calls a table
# what others call a setting -> ours
ELSEWHERE = {
    "base_url": "url",
    "api_base": "url",
    "endpoint": "url",
    "type": "kind",
    "provider": "profile",
    "key": "api_key",
    "token": "api_key",
    "database": "url",
}
# options of `antiphon serve` that are no settings
OPTIONS = ("host", "port", "workers", "insecure", "access_log")
# a table of tables -> what one of them looks like
SHAPES = {
    "backends": 'each backend is a table of its own, such as [backends.local] with url = "http://127.0.0.1:8000/v1"',
    "aliases": 'a table of names is expected: [aliases] with "what-callers-say" = "backend/model"',
}
TABLE = "a table is expected"
# pydantic's types of errors -> what is expected
EXPECTED = {
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), TABLE),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number is expected"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number is expected"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false is expected"),
    "string_type": "text in quotes is expected",
    "path_type": "a path in quotes is expected",
    "tuple_type": "a list is expected",
}
# Python's types, as TOML and JSON have them -> what they are called
CAME: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "true or false"),
    (str, "text"),
    ((int, float), "a number"),
    (dict, "a table"),
    ((list, tuple), "a list"),
)


def told(problem: ValidationError, root: type[BaseModel], whence: Callable[[Place], str]) -> str:
    """Return what is wrong, setting by setting. `whence`: where the one at that place was given."""
    tables = tables_of(root)
    faults = [
        redact(f"{whence(one['loc'])}: {dotted(one['loc'])}: {_fault(one, tables)}")
        for one in problem.errors(include_url=False)
    ]
    return (
        faults[0]
        if len(faults) == 1
        else "\n".join([f"{len(faults)} settings are wrong:", *(f"- {one}" for one in faults)])
    )


def tables_of(root: type[BaseModel], inside: str = "") -> Tables:
    """Return the tables of a file by their names, `[backends.NAME]` for those that users name."""
    found: Tables = {inside: root}
    for name, field in root.model_fields.items():
        inner = f"{inside}.{name}" if inside else name
        model, keyed = _model_in(field.annotation)
        if model is not None:
            found |= tables_of(model, f"{inner}.{NAME}" if keyed else inner)
    return found


def dotted(place: Place) -> str:
    """Return a place as the parts of TOML's keys."""
    return ".".join(map(str, place))


def _model_in(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """Return the model of a table that a field holds, and whether the field is a table of such tables."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    models = [one for one in get_args(annotation) if isinstance(one, type) and issubclass(one, BaseModel)]
    return (models[0], True) if models else (None, False)


def _fault(one: Any, tables: Tables) -> str:
    """Return what is wrong with one setting, as pydantic tells it."""
    place: Place = one["loc"]
    if one["type"] == "extra_forbidden":
        return _unknown(place, tables)
    if one["type"] == "value_error":
        return str(one["ctx"]["error"])
    expected = EXPECTED.get(one["type"])
    if expected is None:
        return str(one["msg"]).replace("Input should be", "it should be")
    shape = SHAPES.get(str(next(iter(place), ""))) if expected == TABLE and len(place) <= 2 else None
    return shape or f"{expected}, and {_kind(one['input'])} came"


def _kind(value: Any) -> str:
    return next((name for kind, name in CAME if isinstance(value, kind)), "something else")


def _unknown(place: Place, tables: Tables) -> str:
    """Return what to do about a name that no setting has."""
    name, table = str(place[-1]), _called(place[:-1], tables)
    here, homes = list(tables[table].model_fields), list(_homes(name, table, tables))
    hints = [*_meant(name, place[:-1], here, NEARER if homes else LIKE), *homes]
    takes = f"{f'[{dotted(place[:-1])}]' if table else 'the top of a file'} takes {', '.join(here)}"
    return "; ".join(["there is no such setting", *hints, takes]).replace("?; t", "? T").replace("?;", "?")


def _called(place: Place, tables: Tables) -> str:
    """Return the name of the table at a place, as `tables_of` has it."""
    plain = dotted(place)
    return plain if plain in tables else dotted((*place[:-1], NAME))


def _meant(name: str, table: Place, here: Sequence[str], like: float) -> Iterator[str]:
    word = ELSEWHERE.get(name)
    close = word if word in here else nearest(name, here, like)
    if not table and name in OPTIONS:
        yield f"it is an option of the command: --{name.replace('_', '-')}"
    elif close is not None:
        yield f"did you mean {dotted((*table, close))}?"


def _homes(name: str, table: str, tables: Tables) -> Iterator[str]:
    """Yield where else a setting has that name."""
    homes = [title for title, model in tables.items() if title != table and name in model.model_fields]
    inner = [f"[{home}]" for home in homes if home]
    if "" in homes:
        yield f"{name} stands before the first [table] of the file: what follows a [table] is a part of it"
    if inner:
        yield f"{name} is a setting of {' and '.join(inner)}"


# --- where a setting was given --------------------------------------------------------------------------------------


def variables(root: type[BaseModel], prefix: str, inner: str) -> list[str]:
    """Return the environment variables of all settings whose tables have fixed names."""
    return [
        prefix + (f"{title}.{name}" if title else name).replace(".", inner).upper()
        for title, model in tables_of(root).items()
        if NAME not in title
        for name in model.model_fields
    ]


def variable_of(place: Place, prefix: str, inner: str) -> tuple[str, bool]:
    """Return the environment variable that the setting at a place, or a table around it, may have been given in, and
    whether it is that of the setting alone; "" where there is none."""
    given = {name.upper(): name for name in os.environ}
    for length in range(len(place), 0, -1):
        name = prefix + inner.join(map(str, place[:length])).upper()
        if name in given:
            return given[name], length == len(place)
    return "", False


def holds(held: Any, place: Place) -> bool:
    """Return whether the setting at a place, or the value around it that is no table, is in `held`."""
    for part in place:
        if not isinstance(held, Mapping):
            return True
        if part not in held:
            return False
        held = held[part]  # pyright: ignore[reportUnknownVariableType]
    return True
