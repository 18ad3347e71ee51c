"""The gateway's own OpenAPI document, from the schemas by which requests are checked."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

from antiphon import __version__

from .schema import COMPACT, CONVERSATION, COUNT, CREATE, Schema

Json: TypeAlias = dict[str, Any]

_ERROR: Json = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}
_JSON = "application/json"
_OBJECT: Json = {"type": "object"}
_EVENT: Json = {  # of each event; OpenAPI 3.1 has no word for a stream of them
    "type": "object",
    "required": ["event", "data"],
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
}
# status -> when it comes
_REFUSED = {
    "400": "The request is wrong; `param` says where",
    "401": "The key is missing or wrong",
    "404": "There is none of that name",
    "408": "The body was too slow",
    "413": "The body is too large",
    "415": "The content type or coding is not read",
    "422": "The backend refuses the request",
    "429": "The backend's limit is reached",
    "500": "The backend failed",
    "501": "The backend has no counter of tokens",
    "502": "The backend cannot be reached",
    "503": "No place is free, or the store cannot be used",
    "504": "The backend took too long",
}
_PAGING = ("limit", "order", "after", "before")
_QUERY: dict[str, Json] = {
    "limit": {"type": "integer", "minimum": 1, "maximum": 100},
    "order": {"type": "string", "enum": ["asc", "desc"]},
    "after": {"type": "string"},
    "before": {"type": "string"},
    "stream": {"type": "boolean"},
    "starting_after": {"type": "integer", "minimum": -1, "maximum": 2**53},
}


@cache
def document() -> Json:
    """Return the document."""
    response, conversation = "/v1/responses/{response_id}", "/v1/conversations/{conversation_id}"
    return {
        "openapi": "3.1.0",
        "info": {"title": "antiphon", "version": __version__, "description": "The Responses API over chat backends."},
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}, "schemas": {"Error": _ERROR}},
        "security": [{}, {"key": []}],
        "paths": {
            "/v1/responses": {"post": _does("create", _body(CREATE, ["model", "input"]), streams=True)},
            "/v1/responses/input_tokens": {"post": _does("countInputTokens", _body(COUNT, ["model"]))},
            "/v1/responses/compact": {"post": _does("compact", _body(COMPACT, ["model"]))},
            response: {
                "get": _does("retrieve", query=("stream", "starting_after"), path=response, streams=True),
                "delete": _does("delete", path=response),
            },
            f"{response}/cancel": {"post": _does("cancel", path=response)},
            f"{response}/input_items": {"get": _does("inputItems", query=_PAGING, path=response)},
            "/v1/models": {"get": _does("models")},
            "/v1/conversations": {"post": _does("createConversation", _body(CONVERSATION, []))},
            conversation: {
                "get": _does("conversation", path=conversation),
                "post": _does(
                    "changeConversation", _body({"metadata": CONVERSATION["metadata"]}, []), path=conversation
                ),
                "delete": _does("deleteConversation", path=conversation),
            },
            f"{conversation}/items": {
                "get": _does("conversationItems", query=_PAGING, path=conversation),
                "post": _does("extendConversation", _body(CONVERSATION, []), path=conversation),
            },
            "/healthz": {"get": _does("health")},
            "/readyz": {"get": _does("ready")},
        },
    }


def _does(
    name: str, body: Json | None = None, *, query: tuple[str, ...] = (), path: str = "", streams: bool = False
) -> Json:
    parameters: list[Json] = [{"name": one, "in": "query", "schema": _QUERY[one]} for one in query]
    if "{" in path:
        inner = path[path.index("{") + 1 : path.index("}")]
        parameters.append({"name": inner, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}})
    content: Json = {_JSON: {"schema": _OBJECT}}
    if streams:
        content["text/event-stream"] = {"schema": _EVENT}
    answers: Json = {"200": {"description": "As asked", "content": content}}
    for status, about in _REFUSED.items():
        answers[status] = {"description": about, "content": {_JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}}
    made: Json = {"operationId": name, "parameters": parameters, "responses": answers}
    return made if body is None else {**made, "requestBody": body}


def _body(properties: dict[str, Schema], required: list[str]) -> Json:
    nullable = {
        name: schema if name in required else {"anyOf": [schema, {"type": "null"}]}
        for name, schema in properties.items()
    }
    schema = {"type": "object", "required": required, "properties": nullable}
    return {"required": bool(required), "content": {_JSON: {"schema": schema}}}
