"""FTH: faithfulness to the chunks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from antiphon_conformance.attribution import CallSaid
from antiphon_conformance.events import CALLS
from antiphon_conformance.evidence import CHAT_CALLS, CHAT_REASONING, CHAT_TEXT, MIXTURE, TEXT
from antiphon_conformance.read import quoted, text
from antiphon_conformance.rule import Found, Level, Need, rule
from antiphon_conformance.said import Kind, Said
from antiphon_conformance.same import Difference, Stretch, arguments, difference, fits
from antiphon_conformance.trace import Trace
from antiphon_conformance.walk import Item

_TEXTS: tuple[Kind, ...] = ("text", "refusal", "reasoning")
# kind of what chunks say -> the type of item it is in, for counting items
_RUNS: dict[Kind, str] = {
    "text": "message",
    "refusal": "message",
    "reasoning": "reasoning",
    "sealed": "reasoning",
    "call": "call",
}
_TAGS = re.compile(r"<(tool_calls?|function)\b.*?(</\1>|\Z)|</?[A-Za-z|_]+[^<>]*>|\s+", re.DOTALL)


@rule("FTH001", "all-text", Level.MUST, since="1.0", sources=(CHAT_TEXT, TEXT), needs=(Need.CHUNKS,))
def all_text(trace: Trace) -> Iterator[Found]:
    """All text and all of a refusal in the chunks is in the messages, once and in order, and takes turns with the
    reasoning and the calls as in the chunks; white space that stood alone between items may be missing."""
    if trace.said is not None and trace.said.quirks:
        yield from _jointly(trace, trace.said)
        return
    for kind in ("text", "refusal"):
        yield from _unsaid(trace, kind)
    yield from _out_of_turn(trace, "text")


@rule("FTH002", "all-arguments", Level.MUST, since="1.0", sources=(CHAT_CALLS, MIXTURE), needs=(Need.CHUNKS,))
def all_arguments(trace: Trace) -> Iterator[Found]:
    """Every call in the chunks that has a name is an item, in order of appearance, with its name, its id where it has
    one of its own, and all its arguments."""
    if trace.said is None:
        return
    due, made = _due_calls(trace.said), _calls(trace)
    if len(made) < len(due) and not trace.said.unclear:
        names = ", ".join(call.name for call in due)
        yield Found(trace.end, f"{len(made)} calls are items, the chunks have {len(due)}: {names}")
    elif len(made) == len(due) and not trace.said.unclear:
        for call, item in zip(due, made, strict=True):
            if (found := _other_call(call, item)) is not None:
                yield found


@rule("FTH003", "all-reasoning", Level.MUST, since="1.0", sources=(CHAT_REASONING, MIXTURE), needs=(Need.CHUNKS,))
def all_reasoning(trace: Trace) -> Iterator[Found]:
    """All reasoning in the chunks is in reasoning items, once and in order, in as many turns as there; a text that two
    fields of one delta have counts once."""
    if trace.said is not None and not trace.said.quirks:
        yield from _unsaid(trace, "reasoning")
        yield from _out_of_turn(trace, "reasoning")


@rule(
    "FTH004",
    "nothing-invented",
    Level.MUST,
    since="1.0",
    sources=(CHAT_TEXT, CHAT_CALLS, CHAT_REASONING),
    needs=(Need.CHUNKS,),
)
def nothing_invented(trace: Trace) -> Iterator[Found]:
    """No text, refusal, reasoning or call is in the items that is not in the chunks. White space counts as any other
    text, also where it is all of one; what stood alone between items in the chunks may be there or not."""
    if trace.said is None or trace.said.quirks:
        return
    for kind in _TEXTS:
        yield from _invented(trace, kind)
    due, made = _due_calls(trace.said), _calls(trace)
    if len(made) > len(due) and not trace.said.unclear:
        extra = ", ".join(item.label() for item in made[len(due) :])
        yield Found(made[len(due)].first_at, f"{len(made)} calls are items, the chunks have {len(due)}: {extra}")


@rule("FTH005", "the-cut-does-not-matter", Level.MUST, since="1.0", sources=(CHAT_TEXT, TEXT), needs=(Need.CHUNKS,))
def the_cut_does_not_matter(trace: Trace) -> Iterator[Found]:
    """However the chunks cut a text, it is one item: there are no more messages and reasoning items than the chunks
    have runs of their kind."""
    if trace.said is None or trace.said.quirks or trace.said.unclear:
        return
    runs = trace.said.runs(_RUNS)
    sealed = len({at for at, _, _, _ in trace.said.of("sealed")})
    for kind, allowed in (("message", runs.count("message")), ("reasoning", runs.count("reasoning") + sealed)):
        made = [item for item in trace.items if item.type == kind]
        if len(made) > allowed > 0:
            yield Found(
                made[allowed].first_at, f"{len(made)} items of type {kind}, the chunks have {allowed} runs of it"
            )


# Texts


def _due(said: Said, kind: Kind) -> list[Stretch]:
    """Return the text that is due. White space alone is free where no neighbour is of its kind."""
    seen = [piece for piece in said.pieces if piece[3] or piece[1] == kind]
    sealed = {at for at, _, _, _ in said.of("sealed")}
    made: list[Stretch] = []
    nearest: list[Kind | None] = [one if visible else None for _, one, _, visible in seen]
    after = _filled(nearest[::-1])[::-1]
    for (at, one, told, visible), left, right in zip(seen, _filled(nearest), after, strict=True):
        if one == kind:
            alone = kind not in (left, right) or at in sealed
            made.append(Stretch(told, not visible and alone))
    return made


def _filled(kinds: list[Kind | None]) -> list[Kind | None]:
    """Return for each place the last kind up to there."""
    made: list[Kind | None] = []
    for kind in kinds:
        made.append(kind or (made[-1] if made else None))
    return made


def _parted(trace: Trace, kind: Kind) -> Difference | None:
    """Return where what came parts from what is due, None where it does not."""
    if trace.said is None:
        return None
    got, said = trace.texts[kind], trace.said.joined(kind)
    if got == said or fits(got, _due(trace.said, kind)):
        return None
    return difference(got, said)


def _unsaid(trace: Trace, kind: Kind) -> Iterator[Found]:
    """Yield where something of the chunks is missing, changed or said twice."""
    parted = _parted(trace, kind)
    if trace.said is None or parted is None:
        return
    at, lost, extra = parted
    if lost.strip():
        has = f"there is {quoted(extra)}" if extra else "there is nothing"
        yield Found(trace.end, f"after {at} characters of {kind} the chunks have {quoted(lost)}, and {has}")
    elif extra and extra in trace.said.joined(kind):
        yield Found(trace.end, f"{quoted(extra)} is said again after {at} characters of {kind}")
    elif lost and not extra and not trace.said.unclear:
        yield Found(trace.end, f"white space is lost after {at} characters of {kind}")


def _out_of_turn(trace: Trace, kind: Kind) -> Iterator[Found]:
    """Yield where text, refusal and reasoning are all there, and this kind is not in its turns as in the chunks."""
    due, made = _turns_due_and_made(trace)
    if made != due and (kind == "text" or made.count(kind) < due.count(kind)):
        turn = next((n for n, (one, other) in enumerate(zip(made, due, strict=False)) if one != other), len(made))
        yield Found(trace.end, f"the chunks have {' → '.join(due)}, the items part from that after {turn} turns")


def _turns_due_and_made(trace: Trace) -> tuple[Sequence[str], Sequence[str]]:
    """Return the kinds that take turns in the chunks and in the items; none where another rule says what is wrong: that
    reasoning does not come first is RSN002's, that there are more turns FTH005's, that a text is another FTH001's."""
    said = trace.said
    if said is None or said.unclear:
        return [], []
    kinds = (*_TEXTS, "call") if _calls_have_one_turn(said) else _TEXTS
    due = said.runs({kind: kind for kind in kinds})
    made = [kind for kind, _ in groupby(kind for kind in trace.turns if kind in kinds)]
    if made == due:
        return due, made
    others = due[:1] == ["reasoning"] != made[:1] or {*due} != {*made}
    more = any(True for _ in the_cut_does_not_matter(trace))
    if others or more or any(_differs(trace, kind) for kind in _TEXTS):
        return [], []
    return due, made


def _calls_have_one_turn(said: Said) -> bool:
    """Whether all fragments of all calls come together, so that the chunks say when the calls have their turn."""
    return said.runs(_RUNS).count("call") == 1 and all(call.begun for call in said.calls)


def _differs(trace: Trace, kind: Kind) -> bool:
    """Whether a text is another than in the chunks, also without white space."""
    said = trace.said.joined(kind) if trace.said is not None else ""
    return "".join(said.split()) != "".join(trace.texts[kind].split())


def _invented(trace: Trace, kind: Kind) -> Iterator[Found]:
    """Yield where there is something that the chunks do not have; a change or a repetition is FTH001's or FTH003's."""
    parted = _parted(trace, kind)
    if trace.said is None or parted is None:
        return
    at, lost, extra = parted
    if extra and not lost.strip() and extra not in trace.said.joined(kind):
        yield Found(trace.end, f"{quoted(extra)} after {at} characters of {kind} is not in the chunks")


def _jointly(trace: Trace, said: Said) -> Iterator[Found]:
    """Yield where text and reasoning together are not those of the chunks, but for tags and white space: what is
    which, the profile's quirks decide."""
    got = "".join(trace.texts[kind] for kind in _TEXTS)
    due = [told for _, _, told, _ in said.of("text", "reasoning", "refusal")]
    bare = sorted(_TAGS.sub("", got))
    cumulative = any(later.startswith(earlier) and earlier for earlier, later in pairwise(due))
    if bare != sorted(_TAGS.sub("", "".join(due))) and not cumulative:
        yield Found(
            trace.end, f"text and reasoning have {len(bare)} characters that are no tags, the chunks have others"
        )


# Calls


def _due_calls(said: Said) -> list[CallSaid]:
    return [call for call in said.calls if call.raw_name]


def _calls(trace: Trace) -> list[Item]:
    return [item for item in trace.items if item.type in CALLS]


def _other_call(call: CallSaid, item: Item) -> Found | None:
    """Return where an item is not the call that the chunks have in its place."""
    at, said, due = item.done_at or item.first_at, item.said, call.arguments.strip()
    name, call_id, held = text(said.get("name")), text(said.get("call_id")), arguments(item).strip()
    if name != call.name:
        return Found(at, f"{item.label()} is called {quoted(name)}, in the chunks {quoted(call.name)}")
    if call.call_id not in ("", call_id):
        return Found(at, f"{item.label()} has call_id {quoted(call_id)}, in the chunks {quoted(call.call_id)}")
    if held != due and (due or held != "{}"):
        return Found(at, f"{item.label()} has {quoted(arguments(item))}, in the chunks {quoted(call.arguments)}")
    return None
