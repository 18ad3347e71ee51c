"""What several backends need: keys from the environment, optional packages."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from antiphon.errors import BadInput, ExtraMissing


def key_of(api_key: str | None, api_key_env: str | None) -> str | None:
    """Return the key that was given, else the one in the environment variable. Raises BadInput where that is unset."""
    if api_key is not None or api_key_env is None:
        return api_key
    key = os.environ.get(api_key_env)
    if not key:
        raise BadInput(f"api_key_env is {api_key_env!r}, and no such environment variable is set")
    return key


def without_credentials(url: str | None) -> str | None:
    """Return a URL as it may be shown: without user, password and query. Raises BadInput for what is no URL."""
    if url is None:
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        raise BadInput("base_url cannot be read as a URL") from None  # the reason may quote a password
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def optional(module: str, extra: str) -> Any:
    """Return an optional package. Raises ExtraMissing, which names the extra that brings it."""
    try:
        return import_module(module)
    except ImportError as problem:
        raise ExtraMissing(
            f"this backend needs the package {module!r} ({problem}): pip install 'antiphon[{extra}]'", extra=extra
        ) from problem
