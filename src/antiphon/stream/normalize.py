"""`Normalizer`: chunk to deltas, in the order in which they count, through the profile's quirks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, TypeAlias

from antiphon.profile import REASONING_FIELDS, Profile, is_idle
from antiphon.usage import responses_usage

from .chunk import (
    LISTS,
    Unreadable,
    arguments_of,
    decode,
    entries,
    fields,
    is_object,
    many,
    plain,
    text_of,
    whole_characters,
    whole_number,
    word,
)
from .deltas import (
    AnnotationDelta,
    CallDelta,
    Delta,
    ErrorDelta,
    FinishDelta,
    Json,
    LogprobsDelta,
    MediaDelta,
    ReasoningDelta,
    RefusalDelta,
    SourceDelta,
    TextDelta,
    UsageDelta,
)
from .faults import SERVER_ERROR, error_in
from .halves import Halves

Warn: TypeAlias = Callable[[str, str], None]
Fields: TypeAlias = Mapping[str, Any]

# Where a chunk says what it is of: all but the model go to provider_data, under the same names.
SOURCE_FIELDS = ("model", "id", "system_fingerprint", "service_tier", "provider")
END_FIELDS = ("finish_reason", "native_finish_reason")
FIRST = (None, 0)  # the index of the choice that is converted
# tool call fields that must come back on the next turn. Sources: gemini-openai-compat/issue--openmaic-1556
# (extra_content); LiteLLM (provider_specific_fields, thought_signature).
CALL_EXTRAS = ("extra_content", "provider_specific_fields", "thought_signature")
CALL_FIELDS = frozenset({"tool_calls", "function_call"})
REPLAYED_FIELDS = frozenset({"reasoning_details", "thinking_blocks", "provider_specific_fields"})
CITING_FIELDS = frozenset({"annotations", "citations", "provider_specific_fields"})
MEDIA_FIELDS = ("audio", "images", "image")
MEDIA_PARTS = frozenset({"image", "image_url", "input_audio", "audio", "file", "video", "video_url"})


class Normalizer:
    """Chunks in, deltas out. `warn(code, message)` hears of what is odd."""

    def __init__(self, profile: Profile, warn: Warn) -> None:
        self.chunks = 0  # that came, those counted that went past
        self._warn = warn
        self._reasoning_fields = profile.reasoning_fields
        self._quirks = tuple(quirk.start() for quirk in profile.quirks)
        self._reasoning_keys, self._usual = _reasoning_keys(profile.reasoning_fields)
        self._opened = False  # something visible came: what chunks say of their source is known by then
        self._unsaid: Sequence[str] = SOURCE_FIELDS
        self._tool_calls = False
        self._citations: Any = None
        self._halves = Halves()

    @property
    def reads_usual(self) -> bool:
        """Whether a usual chunk needs nothing of what is here: content came, and no quirk is at work."""
        return self._opened and self._usual and not self._halves.held and all(map(is_idle, self._quirks))

    def feed(self, chunk: Any) -> Sequence[Delta] | None:
        """Return the deltas of `chunk`, an SDK's object, a mapping or JSON text; None where it is no object."""
        if isinstance(chunk, bytes | str):
            return self.feed_json(chunk.encode("utf-8", "surrogatepass") if isinstance(chunk, str) else chunk)
        self.chunks += 1
        return self._readable(fields(chunk)) if is_object(chunk) else None

    def feed_json(self, payload: bytes, *, error: bool = False) -> Sequence[Delta] | None:
        """Return the deltas of a chunk in JSON; None where `payload` holds no object.

        `error`: the payload came as an `event: error`, so it reports an error whatever it looks like.
        """
        self.chunks += 1
        held = decode(payload) or self._replaced(payload)
        if error:
            said = held if held else {"message": payload.decode("utf-8", "replace")}
            held = said if said.get("error") else {"error": said}
        return None if held is None else self._readable(held)

    def _replaced(self, payload: bytes) -> Json | None:
        """Return the object in a payload with bytes that are no UTF-8: they become U+FFFD.

        So the HTML standard decodes server-sent events.
        """
        held = decode(payload.decode("utf-8", "replace"))
        if held:
            self._warn("not-utf-8", "bytes that are no UTF-8 were read as U+FFFD")
        return held

    def finish(self) -> Sequence[Delta]:
        """Return what the quirks kept back."""
        deltas = list(self._through(self._halves.finish(), 0))
        for place, quirk in enumerate(self._quirks):
            deltas.extend(self._through(quirk.finish(), place + 1))
        return deltas

    def _readable(self, chunk: Fields) -> Sequence[Delta]:
        try:
            return self._read(chunk)
        except Unreadable as error:
            return [ErrorDelta(SERVER_ERROR, f"chunk {self.chunks - 1}: {error}")]
        except RecursionError:
            return [ErrorDelta(SERVER_ERROR, f"chunk {self.chunks - 1} is nested too deeply to be read")]

    def _read(self, chunk: Fields) -> Sequence[Delta]:
        choices, any_choice = self._choices(chunk)
        choice = choices[0] if len(choices) == 1 else _joined(choices)
        deltas: list[Delta] = [*self._source(chunk, choice)]
        for one in choices:
            for message in self._messages(one):
                deltas.extend(self._message(message, one))
        if chunk.get("citations"):
            deltas.extend(self._annotations(chunk))
        for one in choices:
            finish = one.get("finish_reason")
            if finish and (reason := word(finish).strip().lower()):
                deltas.append(FinishDelta(reason))
        deltas.extend(self._usage(chunk, choice, any_choice))
        fault = error_in(chunk, choice)
        if fault is not None:
            deltas.append(ErrorDelta(*fault))
        return self._through(deltas, 0) if self._quirks else deltas

    def _through(self, deltas: Sequence[Delta], place: int) -> Sequence[Delta]:
        for quirk in self._quirks[place:]:
            deltas = [made for delta in deltas for made in quirk.feed(delta)]
        return deltas

    # --- what the chunk says of itself -------------------------------------------------------------------------

    def _choices(self, chunk: Fields) -> tuple[list[Fields], bool]:
        """Return the entries for choice 0, one as a rule, and whether the chunk had any choice."""
        given = chunk.get("choices")
        if not given:
            return [], False
        listed = many(given)
        if len(listed) == 1 and (only := fields(listed[0])).get("index") == 0:
            return [only], True
        choices = [fields(one) for one in listed if is_object(one)]
        if not choices:
            self._warn("choices-unreadable", f"no entry of choices, which is {type(given).__name__}, is an object")
        found = [choice for choice in choices if whole_number(choice.get("index")) in FIRST]
        if len(found) < len(choices):
            self._warn("other-choice", "only choice 0 is converted; others are left out")
        return found, bool(choices)

    def _messages(self, choice: Fields) -> list[Fields]:
        """Return the deltas of a choice: one, as a rule. A choice without `delta` falls back to its `message`."""
        delta = choice.get("delta")
        if type(delta) is dict:
            return [delta]
        for key in ("delta", "message"):
            value = choice.get(key)
            if isinstance(value, str) and value:
                return [{"content": value}]
            found = [fields(one) for one in many(value)]
            if found:
                return found if key == "delta" else [_numbered(message) for message in found]
        text = choice.get("text")
        return [{"content": text}] if isinstance(text, str) and "delta" not in choice else []

    def _source(self, chunk: Fields, choice: Fields) -> Iterable[SourceDelta]:
        """Yield the facts that are new; a usual chunk's are not looked at, so no chunk in the middle of content is."""
        ends = {key: plain(choice[key]) for key in END_FIELDS if choice.get(key)}
        if self._opened and not ends and not chunk.get("usage"):
            return ()
        new = {key: said for key in self._unsaid if (said := word(chunk.get(key)))}
        if new:
            self._unsaid = [key for key in self._unsaid if key not in new]
        named = new.pop("model", "")
        new.update(ends)
        return (SourceDelta(named, new),) if named or new else ()

    def _usage(self, chunk: Fields, choice: Fields, any_choice: bool) -> Sequence[UsageDelta]:
        """Return the usage: of the chunk, under `x_groq` (Groq), or in the choice (Moonshot)."""
        for usage in (chunk.get("usage"), fields(chunk.get("x_groq")).get("usage"), choice.get("usage")):
            if usage is None:
                continue
            if not is_object(usage):
                self._warn("usage-unreadable", f"usage is {type(usage).__name__}, not an object")
                continue
            raw = plain(usage)
            found = responses_usage(raw)
            if found is not None:
                return (UsageDelta(found, any_choice, raw),)
        return ()

    # --- the message -------------------------------------------------------------------------------------------

    def _message(self, message: Fields, choice: Fields) -> Sequence[Delta]:
        if not choice.get("logprobs") and _is_silent(message):
            return ()
        keys = message.keys()
        content = message.get("content")
        pieces: list[Delta] = [TextDelta(content)] if type(content) is str and content else [*self._content(content)]
        said: list[Delta] = [] if keys.isdisjoint(CALL_FIELDS) else [*self._calls(message)]
        reasoning = [] if keys.isdisjoint(self._reasoning_keys) else self._reasoning(message)
        said.extend(reasoning)
        refusal = text_of(message.get("refusal"))
        if refusal:
            said.append(RefusalDelta(refusal))
        if reasoning:
            pieces = _without_repeats(pieces, reasoning[0].text)
        logprobs = choice.get("logprobs")
        said.extend(self._with_logprobs(pieces, said, fields(logprobs)) if logprobs else pieces)
        if isinstance(content, LISTS):
            said.sort(key=_place)  # typed parts may stand in any order
        said = [whole for one in said if (whole := self._halves.mend(one)) is not None]
        self._opened = self._opened or bool(said)
        if not keys.isdisjoint(CITING_FIELDS):
            said.extend(self._annotations(message))
        if not keys.isdisjoint(MEDIA_FIELDS):
            said.extend(MediaDelta(key, plain(message[key])) for key in MEDIA_FIELDS if message.get(key))
        return said

    def _content(self, content: Any) -> Iterable[Delta]:
        """Yield the pieces of `content`: text, or the typed parts of a list in their order (Mistral)."""
        if content is None or isinstance(content, str) or not isinstance(content, (*LISTS, Mapping)):
            text = text_of(content)
            if text:
                yield TextDelta(text)
            return
        for part in content if isinstance(content, LISTS) else (content,):  # pyright: ignore[reportUnknownVariableType]
            yield from self._part(part)

    def _part(self, part: Any) -> Iterable[Delta]:
        held = fields(part)
        kind = word(held.get("type"))
        if kind in MEDIA_PARTS:
            yield MediaDelta(kind, plain(part))
        elif kind in ("thinking", "reasoning", "redacted_thinking"):
            yield from _reasoning_part(held)
        elif kind == "refusal" and text_of(held.get("refusal")):
            yield RefusalDelta(text_of(held.get("refusal")))
        elif text := text_of(part):
            yield TextDelta(text)
        elif kind not in ("text", "output_text", "") or not (held or isinstance(part, str) or part is None):
            self._warn("part-unknown", f"a content part of type {kind or type(part).__name__!r} has no text")

    def _reasoning(self, message: Fields) -> list[ReasoningDelta]:
        """Return the reasoning of a delta as one delta. The same text in two fields is one text."""
        details = [fields(one) for one in (*many(message.get("reasoning_details")), *_blocks(message))]
        texts = [text_of(message.get(name)) for name in self._reasoning_fields]
        texts.append("".join(_detail_text(piece) for piece in details))
        text = "".join(dict.fromkeys(texts))
        kept = tuple(plain(piece) for piece in details if piece)
        return [ReasoningDelta(text, kept)] if text or kept else []

    def _with_logprobs(self, pieces: Sequence[Delta], before: Sequence[Delta], logprobs: Fields) -> Iterable[Delta]:
        """Yield `pieces` with the log probabilities of the choice at the text, or apart where there is no text."""
        of_content = entries(logprobs.get("content"))
        texts = [piece for piece in pieces if isinstance(piece, TextDelta)]
        for piece in pieces:
            last = bool(texts) and piece is texts[-1]
            yield TextDelta(texts[-1].text, of_content) if last else piece
        if of_content and not texts:
            yield LogprobsDelta(_owner([*before, *pieces]), of_content)
        for key, kind in OTHER_LOGPROBS.items():
            others = entries(logprobs.get(key))
            if others:
                yield LogprobsDelta(kind, others)

    def _annotations(self, holder: Fields) -> Iterable[AnnotationDelta]:
        """Yield annotations: typed ones, flat `citations` with their `search_results`, LiteLLM's nested ones."""
        found = [flat for one in many(holder.get("annotations")) for flat in _annotation(fields(one))]
        citations = holder.get("citations") or fields(holder.get("provider_specific_fields")).get("citations")
        if citations and citations != self._citations:
            self._citations = citations
            found.extend(_citations(many(citations), many(holder.get("search_results"))))
        if found:
            yield AnnotationDelta(tuple(found))

    # --- tool calls --------------------------------------------------------------------------------------------

    def _calls(self, message: Fields) -> Iterable[CallDelta]:
        given = message.get("tool_calls")
        calls = many(given)
        if given and not calls:
            self._warn(
                "tool-calls-unreadable", f"no entry of tool_calls, which is {type(given).__name__}, is an object"
            )
        self._tool_calls = self._tool_calls or bool(calls)
        for call in calls:
            yield from self._call(fields(call))
        legacy = fields(message.get("function_call"))
        if legacy and not self._tool_calls:
            fragment = CallDelta(None, "", word(legacy.get("name")), arguments_of(legacy.get("arguments")), legacy=True)
            if fragment.name or fragment.arguments:
                yield fragment

    def _call(self, call: Fields) -> Iterable[CallDelta]:
        custom = is_object(call.get("custom")) or (call.get("type") == "custom" and not call.get("function"))
        body = fields(call.get("custom" if custom else "function")) or call
        arguments = body.get("input" if custom else "arguments")
        fragment = CallDelta(
            whole_number(call.get("index")),
            word(call.get("id")),
            word(body.get("name")),
            text_of(arguments) if custom else arguments_of(arguments),
            "custom" if custom else "function",
            extra=_call_extra(call, body),
        )
        if fragment.id or fragment.name or fragment.arguments or fragment.extra:
            yield fragment


# field of `logprobs`, beside `content` -> what its entries belong to
OTHER_LOGPROBS: dict[str, Literal["refusal", "reasoning"]] = {
    "refusal": "refusal",
    "reasoning_content": "reasoning",  # deepseek/rig--streaming-logprobs-matrix
    "reasoning": "reasoning",
}


@cache
def _reasoning_keys(names: tuple[str, ...]) -> tuple[frozenset[str], bool]:
    """Return the fields in which reasoning may be, and whether those called `names` are all that are known."""
    return REPLAYED_FIELDS.union(names), set(names) == set(REASONING_FIELDS)


# Design: GRAMMAR, "Order inside one chunk". What is not in it stands with the text.
ORDER: Mapping[type[Delta], int] = {CallDelta: 0, ReasoningDelta: 1, RefusalDelta: 2}


def _place(said: Delta) -> int:
    return ORDER.get(type(said), 3)


def _joined(choices: Sequence[Fields]) -> Fields:
    """Return what several entries say beside their messages; empty where there is none."""
    return {key: value for choice in choices for key, value in choice.items() if value is not None}


def _is_silent(message: Fields) -> bool:
    """Return whether a delta says nothing: the first and the last of a stream are so, but for the role."""
    for key, value in message.items():  # noqa: SIM110 -- `all` takes twice as long
        if value is not None and value != "" and key != "role":
            return False
    return True


def _numbered(message: Fields) -> Fields:
    """Return a whole message with its calls numbered: where they have no index, each entry is a call of its own."""
    calls = [fields(call) for call in many(message.get("tool_calls"))]
    if not calls:
        return message
    return {**message, "tool_calls": [{"index": n, **_given(call)} for n, call in enumerate(calls)]}


def _given(held: Fields) -> Fields:
    return {key: value for key, value in held.items() if value is not None}


def _owner(said: Sequence[Delta]) -> Literal["text", "refusal", "reasoning"]:
    """Return what the log probabilities of a delta without text belong to: to its reasoning, refusal or call."""
    if any(isinstance(one, RefusalDelta) for one in said):
        return "refusal"
    return "reasoning" if any(isinstance(one, ReasoningDelta | CallDelta) for one in said) else "text"


def _without_repeats(pieces: list[Delta], reasoning: str) -> list[Delta]:
    """Return `pieces` without a typed reasoning part that says what a reasoning field of the same delta said."""
    return [one for one in pieces if not (isinstance(one, ReasoningDelta) and one.text == reasoning and reasoning)]


def _reasoning_part(part: Fields) -> Iterable[ReasoningDelta]:
    text = next(
        (found for key in ("thinking", "text", "reasoning", "summary", "content") if (found := text_of(part.get(key)))),
        "",
    )
    signed = part.get("signature") or part.get("data")
    if text or signed:
        yield ReasoningDelta(text, (plain(part),) if signed else ())


def _blocks(message: Fields) -> list[Any]:
    """Return LiteLLM's `thinking_blocks`, which some versions put under `provider_specific_fields` only."""
    return many(message.get("thinking_blocks")) or many(
        fields(message.get("provider_specific_fields")).get("thinking_blocks")
    )


def _detail_text(piece: Fields) -> str:
    return next((text for key in ("text", "summary", "thinking") if (text := text_of(piece.get(key)))), "")


def _call_extra(call: Fields, body: Fields) -> Json | None:
    found = {key: plain(call[key]) for key in CALL_EXTRAS if call.get(key)}
    if body is not call and body.get("provider_specific_fields"):
        found.setdefault("provider_specific_fields", plain(body["provider_specific_fields"]))
    return found or None


def _annotation(held: Fields) -> Iterable[Json]:
    """Yield an annotation in flat form. Source: openrouter/pydantic-ai--test-openrouter-test-openrouter-web-search."""
    kind = word(held.get("type"))
    if kind == "url_citation" or "url_citation" in held:
        inner = fields(held.get("url_citation")) or held
        url = word(inner.get("url"))
        if url:
            start, end = whole_number(inner.get("start_index")) or 0, whole_number(inner.get("end_index")) or 0
            yield _url_citation(url, text_of(inner.get("title")), start, end)
        else:
            yield plain(held)
    elif held:
        yield plain(held)


def _citations(citations: list[Any], results: list[Any]) -> Iterable[Json]:
    titles = {word(fields(one).get("url")): text_of(fields(one).get("title")) for one in results}
    for one in citations:
        url = one if isinstance(one, str) else word(fields(one).get("url"))
        if url:
            yield _url_citation(url, text_of(fields(one).get("title")) or titles.get(url, ""), 0, 0)


def _url_citation(url: str, title: str, start: int, end: int) -> Json:
    said = {"url": whole_characters(url), "title": whole_characters(title)}
    return {"type": "url_citation", **said, "start_index": start, "end_index": end}
