"""How long a server asks to wait before it is asked again."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

# header -> seconds in its unit. Source: OpenAI and Azure send the first; the second is RFC 9110.
HEADERS = {"retry-after-ms": 0.001, "retry-after": 1.0}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks to wait, never negative; None where it does not say a number or a date."""
    waits = (_seconds(headers[name], unit) for name, unit in HEADERS.items() if headers.get(name))
    return next((wait for wait in waits if wait is not None), None)


def _seconds(value: str, unit: float) -> float | None:
    try:
        wait = float(value) * unit
    except ValueError:
        wait = _until(value)
    return max(wait, 0.0) if math.isfinite(wait) else None


def _until(date: str) -> float:
    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except (ValueError, OverflowError):
        return math.nan
