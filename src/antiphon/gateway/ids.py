"""Ids of responses that tell which gateway gave them."""

from __future__ import annotations

import os
import re
from functools import cached_property

from antiphon.ids import Prefix, RandomIds

_RESPONSE = re.compile(r"resp_[0-9a-f]{48}")


class OwnIds(RandomIds):
    """Random ids; those of responses begin with a mark of this gateway, in this process."""

    @cached_property
    def _mark(self) -> str:
        return os.urandom(6).hex()  # made with the first id: servers may fork what was not used yet

    def make(self, prefix: Prefix) -> str:
        if prefix == "resp_":
            return prefix + self._mark + os.urandom(18).hex()
        return super().make(prefix)

    def are_elsewhere(self, response_id: str) -> bool:
        """Return whether a response of that id may be made in another process, as far as the id tells."""
        return _RESPONSE.fullmatch(response_id) is not None and not response_id.startswith(f"resp_{self._mark}")
