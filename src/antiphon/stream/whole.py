"""A chat answer that was not streamed, through the same assembler: the same answer gives the same `Response`."""

from __future__ import annotations

from typing import Any, Unpack

from antiphon.errors import BadInput, SourceError

from .chunk import decode, fields, is_object, many
from .emit import make_emitter
from .faults import SERVER_ERROR
from .handler import Options, made
from .pull import raise_failure


def to_response(chat_completion: Any, *, raise_on_error: bool = False, **options: Unpack[Options]) -> Any:
    """Return the `Response` of a whole chat completion: an SDK's object, a mapping, or its JSON text.

    An openai `Response` as a rule, a dict with events="dict" or "sse". An error body gives a failed response. Takes the
    options of `ChatCmplStreamHandler`. Raises BadInput where `chat_completion` is no object; with `raise_on_error`
    SourceError where the response failed.
    """
    style = options.get("events", "openai")
    options["events"] = "dict"
    held = decode(chat_completion) if isinstance(chat_completion, str | bytes) else chat_completion
    if held is None or not is_object(held):
        raise BadInput(
            f"chat_completion is {type(chat_completion).__name__} without a JSON object: "
            "to_response takes a chat completion; chunks go to convert, an SSE body to convert_sse"
        )
    handler = made(options)
    handler.feed(held)
    if many(fields(held).get("choices")):
        handler.finish(done=True)
    else:
        handler.fail(SourceError(SERVER_ERROR, "the answer has no choices"))
    if raise_on_error:
        raise_failure(handler)
    return make_emitter(style).response(handler.final or {})
