"""Our own handler family as subjects of the suite: each of the ways in which it takes chunks and gives events.

antiphon check antiphon_conformance.own:dicts
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Set
from typing import TYPE_CHECKING, Any

from antiphon import Profile, aconvert, aconvert_sse, convert, convert_sse
from antiphon.profile import Quirk

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionChunk


def profile_for(opt_ins: Set[str]) -> Profile | None:
    """Return the profile that has what a case asks for; None, the tolerant default, where it asks for nothing."""
    if not opt_ins:
        return None
    from antiphon_providers.quirks import SplitTags, ToolCallTags

    quirks: list[Quirk] = []
    if "think_tags" in opt_ins:
        quirks.append(SplitTags())
    if "tool_call_tags" in opt_ins:
        quirks.append(ToolCallTags())
    return Profile("case", finish_reason_optional="finish_reason_optional" in opt_ins, quirks=tuple(quirks))


def dicts(chunks: Iterable[dict[str, Any]], *, request: Any, opt_ins: Set[str]) -> Iterator[Any]:
    """Yield the events of `convert`, dicts in and dicts out."""
    return convert(chunks, request=request, profile=profile_for(opt_ins), events="dict")


def objects(chunks: Iterable[ChatCompletionChunk], *, request: Any, opt_ins: Set[str]) -> Iterator[Any]:
    """Yield the events of `convert`, objects of openai-python in and out."""
    return convert(chunks, request=request, profile=profile_for(opt_ins))


def body(chunks: Iterable[bytes], *, request: Any, opt_ins: Set[str]) -> Iterator[bytes]:
    """Yield the events of `convert_sse`, server-sent events in and out."""
    return convert_sse(chunks, request=request, profile=profile_for(opt_ins), events="sse")


async def adicts(chunks: AsyncIterator[dict[str, Any]], *, request: Any, opt_ins: Set[str]) -> AsyncIterator[Any]:
    """Yield the events of `aconvert`, dicts in and dicts out."""
    async for event in aconvert(chunks, request=request, profile=profile_for(opt_ins), events="dict"):
        yield event


async def aobjects(
    chunks: AsyncIterator[ChatCompletionChunk], *, request: Any, opt_ins: Set[str]
) -> AsyncIterator[Any]:
    """Yield the events of `aconvert`, objects of openai-python in and out."""
    async for event in aconvert(chunks, request=request, profile=profile_for(opt_ins)):
        yield event


async def abody(chunks: AsyncIterator[bytes], *, request: Any, opt_ins: Set[str]) -> AsyncIterator[bytes]:
    """Yield the events of `aconvert_sse`, server-sent events in and out."""
    async for event in aconvert_sse(chunks, request=request, profile=profile_for(opt_ins), events="sse"):
        yield event


WAYS = {one.__name__: one for one in (dicts, objects, body, adicts, aobjects, abody)}
