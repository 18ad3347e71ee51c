"""The parameters of a request beside its history and its tools."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from antiphon.near import nearest
from antiphon.profile import DEFAULT
from antiphon.stream.chunk import is_object, text_of, word

from .content import Scope
from .read import Json, described, entries, optional_record, record, shared
from .report import BadRequest

Body: TypeAlias = dict[str, Any]
Carry: TypeAlias = Callable[[Any, Scope, Body], None]  # a value, never null, into the body

# Read elsewhere: the history and the tools.
ELSEWHERE = frozenset(
    {"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "text", "stream"}
)
# Of the client library, not of the body.
TRANSPORT = frozenset({"extra_headers", "extra_query", "timeout"})
UNREAD = ELSEWHERE | TRANSPORT
# Parameters that chat has under the same name; the later ones are its own, which clients add to a Responses request.
SAME = (
    *("temperature", "top_p"),
    *("stop", "seed", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "prediction", "modalities"),
    *("response_format", "web_search_options"),
)
# OpenAI's own in chat too. They go through where the profile says so, and where it knows nothing of its backend.
OPENAI = frozenset({"user", "service_tier", "metadata", "verbosity"})
# Hints that what is answered does not depend on. They go through where the profile says so.
HINTS = frozenset(
    {
        *("user", "service_tier", "metadata"),
        *("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "safety_identifier", "client_metadata"),
    }
)
# parameter -> the values that say nothing, so that leaving it out loses nothing
NOTHING: dict[str, tuple[Any, ...]] = {
    "background": (False,),
    "truncation": ("disabled",),
    "include": ([],),
    "n": (1,),
    "metadata": ({},),
}
LATER = ("metadata", "extra_body")  # they look at the others, or count before them
# how the form of the answer is asked for in words, alone and beside tools
ALONE = "Answer with one JSON object and nothing else"
AT_THE_END = "Call tools as you need them. Your last answer, which calls none, is one JSON object and nothing else"
# from low to high. Source: `ReasoningEffort` of openai 3.57.
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
LOGPROBS = "message.output_text.logprobs"
ENCRYPTED = "reasoning.encrypted_content"


def carry_params(request: Json, scope: Scope, body: Body) -> None:
    """Put into `body` what the parameters of `request` become, and report what has no counterpart.

    Raises BadRequest for a value of the wrong form.
    """
    if request.keys() <= UNREAD:
        return
    given = [(name, value) for name, value in request.items() if name not in UNREAD and value is not None]
    for name, value in sorted(given, key=lambda pair: pair[0] in LATER) if len(given) > 1 else given:
        if value in NOTHING.get(name, ()):
            continue
        if name in CARRIERS:
            CARRIERS[name](value, scope, body)
        elif name in SAME:
            _put(name, name, value, scope, body)
        else:
            _pass(name, name, value, scope, body)


def _pass(path: str, name: str, value: Any, scope: Scope, body: Body) -> None:
    """Let a parameter through under its own name, or report that it stays."""
    profile = scope.profile
    if name in profile.passthrough or (name in OPENAI and profile.name == DEFAULT.name):
        _put(path, name, value, scope, body)
    elif name in HINTS:
        scope.report.ignored(path, name, f"profile {profile.name!r} does not take it")
    else:
        why = f"profile {profile.name!r} does not take it" if name in OPENAI else UNCARRIED.get(name)
        scope.report.dropped(path, _told(name, value), why or _no_such(name))


def _put(path: str, name: str, value: Any, scope: Scope, body: Body) -> None:
    """Put a parameter into `body`; what the Responses API's own parameter asked for already counts."""
    if name in body and body[name] != value:
        scope.report.dropped(path, _told(name, value), f"another parameter asks for another {name}")
    else:
        body[name] = shared(value)


def carry_stream(request: Json, scope: Scope, body: Body, *, stream: bool) -> None:
    """Ask for a stream, with its usage unless the caller or the profile says no."""
    options = optional_record(request.get("stream_options"), "stream_options")
    if not (stream or request.get("stream")):
        return
    body["stream"] = True
    if scope.profile.stream_usage and options.get("include_usage") is not False:
        body["stream_options"] = {"include_usage": True}


def carry_text(request: Json, scope: Scope, body: Body, *, tools: bool = False) -> str:
    """Put what `text` asks for into `body`; return what must be said in words, since the backend has no parameter.

    `tools`: some are offered, and some backends take no `response_format` beside them.
    """
    text = optional_record(request.get("text"), "text")
    if text.get("verbosity") is not None:
        _pass("text.verbosity", "verbosity", text["verbosity"], scope, body)
    for name, one in text.items():
        if name not in ("verbosity", "format") and one is not None:
            scope.report.dropped(f"text.{name}", name, NO_SUCH)
    form = optional_record(text.get("format"), "text.format")
    kind = form.get("type")
    if kind is None and any(one is not None for one in form.values()):
        raise BadRequest("text.format.type", f"a type of format is expected, and here is {described(kind)}")
    if kind in (None, "text"):
        return ""
    if kind not in ("json_object", "json_schema"):
        scope.report.dropped("text.format", f"a format of type {kind!r:.40}", "chat has no such format")
        return ""
    taken = scope.profile.response_formats
    if tools and not scope.profile.format_with_tools:
        taken = frozenset[str]()
    if kind == "json_object":
        return _json_object("a JSON object", f"{AT_THE_END if tools else ALONE}.", taken, scope, body)
    return _json_schema(form, AT_THE_END if tools else ALONE, taken, scope, body)


# --- the form of the answer ----------------------------------------------------------------------------------------


def _json_schema(form: Json, said: str, taken: frozenset[str], scope: Scope, body: Body) -> str:
    inner = record(form["json_schema"], "text.format") if is_object(form.get("json_schema")) else form
    schema = shared(inner.get("schema", inner.get("schema_")))
    if not is_object(schema):
        raise BadRequest("text.format.schema", f"a JSON schema is expected, and here is {described(schema)}")
    if "json_schema" not in taken:
        said = f"{said}. It must be valid against this JSON schema:\n{_json(schema)}"
        return _json_object("a JSON schema", said, taken, scope, body)
    made: dict[str, Any] = {"name": _schema_name(inner), "schema": schema}
    for key in ("description", "strict"):
        if inner.get(key) is not None:
            made[key] = inner[key]
    body["response_format"] = {"type": "json_schema", "json_schema": made}
    return ""


def _json_object(came: str, said: str, taken: frozenset[str], scope: Scope, body: Body) -> str:
    """Ask for a JSON object: by the parameter where there is one, and in words where that is not all."""
    known = "json_object" in taken
    if known:
        body["response_format"] = {"type": "json_object"}
        if came == "a JSON object":
            return ""
    became = "a JSON object, and the rest in words" if known else "words"
    why = "has no such format" if taken else "takes no format here"
    scope.report.weakened("text.format", came, became, f"profile {scope.profile.name!r} {why}")
    return said


def _schema_name(form: Json) -> str:
    """Return a legal name for the schema: chat requires one."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", word(form.get("name")))[:64] or "response"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# --- single parameters ---------------------------------------------------------------------------------------------


def _max_output_tokens(value: Any, scope: Scope, body: Body) -> None:
    body[scope.profile.max_tokens_field] = value


def _top_logprobs(value: Any, scope: Scope, body: Body) -> None:
    if value:
        body["logprobs"] = True
        body["top_logprobs"] = value


def _metadata(value: Any, scope: Scope, body: Body) -> None:
    """Source: OpenAI refuses it in chat where `store` is not set (QwenLM/qwen-code#243); backends without `store` do not."""
    if "store" in scope.profile.passthrough and not body.get("store"):
        scope.report.ignored("metadata", "metadata", "the backend takes it for stored completions alone")
    else:
        _pass("metadata", "metadata", value, scope, body)


def _store(value: Any, scope: Scope, body: Body) -> None:
    if "store" in scope.profile.passthrough:
        body["store"] = value
    elif value:
        scope.report.ignored("store", "true", f"profile {scope.profile.name!r} stores no completions")


def _include(value: Any, scope: Scope, body: Body) -> None:
    """Carry what can be asked for; encrypted reasoning is given anyway, where the backend has it."""
    if "include" in scope.profile.passthrough:
        body["include"] = shared(value)
        return
    for number, one in enumerate(entries(value, "include")):
        if one == LOGPROBS:
            body["logprobs"] = True
        elif one != ENCRYPTED:
            scope.report.ignored(f"include[{number}]", f"{one!r:.60}", "chat answers have no such thing")


def _reasoning(value: Any, scope: Scope, body: Body) -> None:
    for name, one in record(value, "reasoning").items():
        if one is None or (name, one) in (("mode", "standard"), ("context", "auto")):
            continue
        if name == "effort":
            _effort(one, scope, body)
        elif name == "mode":
            scope.report.dropped("reasoning.mode", f"{one!r:.40}", "chat has no modes of reasoning")
        else:
            scope.report.ignored(f"reasoning.{name}", f"{one!r:.40}", "chat backends show their reasoning as it is")


def _effort(effort: Any, scope: Scope, body: Body) -> None:
    profile = scope.profile
    if not isinstance(effort, str):
        raise BadRequest("reasoning.effort", f"a level is expected, and here is {described(effort)}")
    level = _nearest(effort, profile.effort_levels)
    if profile.effort_field == "none" or level is None:
        scope.report.dropped("reasoning.effort", f"{effort!r:.40}", f"profile {profile.name!r} has no such level")
        return
    if level != effort:
        scope.report.weakened(
            "reasoning.effort", f"{effort!r:.40}", level, f"profile {profile.name!r} has no such level"
        )
    body[profile.effort_field] = {"effort": level} if profile.effort_field == "reasoning" else level


def _nearest(effort: str, levels: tuple[str, ...] | None) -> str | None:
    """Return the accepted level that is nearest to `effort`, the lower of two; None where it is unknown."""
    if levels is None or effort in levels:
        return effort
    ranks = [level for level in levels if level in EFFORTS]
    if effort not in EFFORTS or not ranks:
        return None
    return min(ranks, key=lambda level: (abs(EFFORTS.index(level) - EFFORTS.index(effort)), EFFORTS.index(level)))


def _stream_options(value: Any, scope: Scope, body: Body) -> None:
    """`include_usage` is read with the stream; what else there is says nothing about the answer."""
    for name, one in record(value, "stream_options").items():
        if name != "include_usage" and one is not None:
            scope.report.ignored(f"stream_options.{name}", name, "it is about the stream of the Responses API")


def _extra_body(value: Any, scope: Scope, body: Body) -> None:
    """What the caller adds for this backend goes through as it is, and counts before all else."""
    body.update({str(key): shared(one) for key, one in record(value, "extra_body").items()})


CARRIERS: dict[str, Carry] = {
    "max_output_tokens": _max_output_tokens,
    "top_logprobs": _top_logprobs,
    "store": _store,
    "metadata": _metadata,
    "include": _include,
    "reasoning": _reasoning,
    "stream_options": _stream_options,
    "extra_body": _extra_body,
}
_STATE = "a chat backend keeps no state: the whole history goes into `input`"
UNCARRIED: dict[str, str] = {
    **dict.fromkeys(("previous_response_id", "conversation", "prompt"), _STATE),
    "background": "chat answers in the foreground alone",
    "truncation": "chat backends truncate nothing",
    "max_tool_calls": "chat has no such limit",
    "context_management": "chat backends manage no context",
}
# what Chat Completions and older clients call a parameter -> the Responses API's own
MEANT: dict[str, str] = {
    **dict.fromkeys(("max_tokens", "max_completion_tokens", "max_new_tokens"), "max_output_tokens"),
    **dict.fromkeys(("messages", "inputs"), "input"),
    **dict.fromkeys(("system", "system_prompt"), "instructions"),
    "functions": "tools",
    "function_call": "tool_choice",
    "reasoning_effort": "reasoning.effort",
}
NO_SUCH = "the Responses API has no such parameter"
KNOWN = (*sorted(ELSEWHERE), *SAME, *sorted(OPENAI | HINTS), *CARRIERS, *UNCARRIED)


def _no_such(name: str) -> str:
    """Return why a parameter is left out that nobody knows, and which one is meant."""
    meant = MEANT.get(name) or nearest(name, KNOWN)
    return NO_SUCH if meant is None else f"{NO_SUCH}; did you mean {meant!r}?"


def _told(name: str, value: Any) -> str:
    """Return a value in words for the report: a plain one as it is, of all else that it was given."""
    return f"the value {value!r:.40}" if isinstance(value, bool | int | float) else text_of(name)
