"""`LiveOptions`: which server is asked, what for, and within which bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

from antiphon.backend import Timeouts
from antiphon.profile import Profile
from antiphon_conformance.exchange import Api
from antiphon_conformance.results import Outcome

# A model on a small machine may think for a minute; a server that says nothing for longer than that hangs.
PATIENCE = Timeouts(connect=10.0, first_byte=120.0, idle=90.0, total=180.0)


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may cost at most; None is without limit.

    Tokens are those that the server counts, or a quarter of the characters where it does not count.
    """

    requests: int | None = 120
    tokens: int | None = 200_000
    seconds: float | None = 900.0


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """What `check_live` is asked.

    `url`: the base URL, as `HttpBackend` takes it. `profile`: what is known of the server, by name or as a value;
    None finds out. `probes`: names of probes, with `*` for anything; none is all of them. `record`: a folder that
    every exchange is written to. `replay`: such a folder, which is judged instead of a server. `strict`: SHOULD
    counts as MUST.
    """

    url: str = ""
    model: str = ""
    api: Api = "chat"
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    profile: str | Profile | None = None
    probes: tuple[str, ...] = ()
    record: Path | None = None
    replay: Path | None = None
    budget: Budget = Budget()
    timeouts: Timeouts = PATIENCE
    concurrency: int = 1
    strict: bool = False

    @property
    def has_key(self) -> bool:
        """Whether requests say who asks."""
        return bool(self.api_key or self.headers or "@" in self.url)


class Step(NamedTuple):
    """What progress tells: probe number `number` of `total` begins (`outcome` None), or is over."""

    number: int
    total: int
    probe: str
    title: str
    outcome: Outcome | None = None


Progress: TypeAlias = Callable[[Step], None]
