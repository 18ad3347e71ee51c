"""A key in an environment variable, whose name an option or a setting gives."""

from __future__ import annotations

import os
import re

from .errors import BadInput
from .near import nearest

NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,63}|[a-z_]{1,64}")  # what else came may be the key itself, and is not shown


def key_in(variable: str, named_by: str, instead: str = "") -> str:
    """Return the key. `named_by`: the option or setting that names the variable; `instead`: where a key itself goes.

    Raises BadInput where there is none.
    """
    key = os.environ.get(variable)
    if key:
        return key
    if not NAME.fullmatch(variable):
        way = f"; a key itself goes into {instead}" if instead else ", not the key itself"
        raise BadInput(f"{named_by} takes the name of an environment variable, such as OPENAI_API_KEY{way}")
    if key is not None:
        raise BadInput(f"{named_by}: the environment variable {variable} is empty")
    close = nearest(variable, os.environ, 0.8)
    hint = f"; did you mean {close}?" if close else f": set it, as with `export {variable}=…`"
    raise BadInput(f"{named_by}: the environment has no {variable}{hint}")
