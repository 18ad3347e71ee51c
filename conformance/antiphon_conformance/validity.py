"""Whether a case of the suite is one: its chunks are chunks, and what it expects is what they say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .case import BadCase, Case, MessageExpected, ReasoningExpected, choices
from .ending import ending_of
from .read import listed, quoted
from .rule import find
from .said import Said, listen


def problems_of(case: Case | BadCase) -> list[str]:
    """Return what is wrong with a case: nothing, if it is one. What its file lacks is known from reading it."""
    match case:
        case BadCase(reason=reason):
            return [reason]
        case Case():
            unknown = [f"there is no rule {code!r}" for code in case.rules if find(code) is None]
            return [*unknown, *_bad_chunks(case)] or list(_bad_expectation(case))


def _bad_chunks(case: Case) -> Iterator[str]:
    """Yield what in the chunks is no chunk of any provider."""
    for at, chunk in enumerate(case.chunks):
        given: object = chunk.get("choices") or []
        if not isinstance(given, list) or len(choices(chunk)) != len(listed(chunk.get("choices"))):
            yield f"chunk {at}: choices is {quoted(chunk['choices'])}, not a list of objects"
        elif not given and not {"usage", "error", "choices"} & set(chunk):
            yield f"chunk {at} has neither choices nor usage nor an error"


def _bad_expectation(case: Case) -> Iterator[str]:
    """Yield where the expectation is not what the chunks say: the text of each kind, and the ending."""
    if case.expect is None or case.opt_ins:
        return
    said = listen(case.chunks, None, case.done)
    due = {"text": said.joined("text"), "refusal": said.joined("refusal"), "reasoning": said.joined("reasoning")}
    for kind, expected in _texts(case).items():
        if _squeezed(expected) != _squeezed(due[kind]):
            yield f"the expected {kind} is {quoted(expected)}, the chunks say {quoted(due[kind])}"
    yield from _bad_ending(case, said)


def _bad_ending(case: Case, said: Said) -> Iterator[str]:
    ending = ending_of(said)
    due = ending.terminal.removeprefix("response.") if case.raises is None or said.finishes else "failed"
    if case.expect is not None and case.expect.status != due and not ending.or_failed:
        yield f"the expected status is {case.expect.status!r}, and {ending.why}, so that it is {due!r}"


def _texts(case: Case) -> dict[str, str]:
    """Return kind of text -> what the expected items say."""
    items: Sequence[object] = case.expect.output if case.expect is not None else ()
    parts = [part for item in items if isinstance(item, MessageExpected) for part in item.parts]
    return {
        "text": "".join(said for kind, said in parts if kind == "output_text"),
        "refusal": "".join(said for kind, said in parts if kind == "refusal"),
        "reasoning": "".join(item.text for item in items if isinstance(item, ReasoningExpected)),
    }


def _squeezed(text: str) -> str:
    return "".join(text.split())
