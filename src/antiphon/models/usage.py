"""`Usage`: what model calls cost, added up, and each request by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from typing import Any, TypeVar

from antiphon.stream.chunk import fields, whole_number


@dataclass(frozen=True, slots=True)
class InputTokensDetails:
    """Which of the input tokens came from a cache, and which were written to one."""

    cached_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True)
class OutputTokensDetails:
    """Which of the output tokens were spent on reasoning."""

    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class RequestUsage:
    """The usage of a single request."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens_details: OutputTokensDetails


D = TypeVar("D", InputTokensDetails, OutputTokensDetails)


@dataclass
class Usage:
    """Tokens and requests, also those that failed and were tried again.

    Details may be given as objects of an SDK, mappings or None; what is missing in them is 0. Each request that
    answered with tokens is kept in `request_usage_entries` once its usage is added to another.
    """

    requests: int = 0
    input_tokens: int = 0
    input_tokens_details: InputTokensDetails = field(default_factory=InputTokensDetails)
    output_tokens: int = 0
    output_tokens_details: OutputTokensDetails = field(default_factory=OutputTokensDetails)
    total_tokens: int = 0
    request_usage_entries: list[RequestUsage] = field(default_factory=list[RequestUsage])

    def __post_init__(self) -> None:
        self.input_tokens_details = _details(InputTokensDetails, self.input_tokens_details)
        self.output_tokens_details = _details(OutputTokensDetails, self.output_tokens_details)

    def add(self, other: Usage) -> None:
        """Add `other` to this."""
        entries = other.request_usage_entries or other.as_entries()
        self.requests += other.requests
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.total_tokens += other.total_tokens
        self.input_tokens_details = _sum(self.input_tokens_details, other.input_tokens_details)
        self.output_tokens_details = _sum(self.output_tokens_details, other.output_tokens_details)
        self.request_usage_entries.extend(entries)

    def as_entries(self) -> list[RequestUsage]:
        """Return this as the usage of one request; none where it has no tokens."""
        if not (self.requests and self.total_tokens):
            return []
        counts = (self.input_tokens, self.output_tokens, self.total_tokens)
        return [RequestUsage(*counts, self.input_tokens_details, self.output_tokens_details)]

    @classmethod
    def of(cls, response: Any) -> Usage:
        """Return the usage of a response, in any style. It counts its requests also where no tokens were reported."""
        held = fields(response)
        usage = fields(held.get("usage"))
        return cls(
            requests=_count(fields(held.get("provider_data")), "requests") or 1,
            input_tokens=_count(usage, "input_tokens"),
            input_tokens_details=_details(InputTokensDetails, usage.get("input_tokens_details")),
            output_tokens=_count(usage, "output_tokens"),
            output_tokens_details=_details(OutputTokensDetails, usage.get("output_tokens_details")),
            total_tokens=_count(usage, "total_tokens"),
        )


def _details(cls: type[D], given: Any) -> D:
    """Return details, whatever they were given as; what is missing is 0."""
    if isinstance(given, cls):
        return given
    held = fields(given)
    return cls(*(_count(held, one.name) for one in dataclass_fields(cls)))


def _sum(one: D, other: D) -> D:
    names = [held.name for held in dataclass_fields(one)]
    return type(one)(*(getattr(one, name) + getattr(other, name) for name in names))


def _count(held: Mapping[str, Any], name: str) -> int:
    return whole_number(held.get(name)) or 0
