"""An MCP server that keeps to the protocol and to nothing else: run as a program, with one of the modes below."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

Json = dict[str, Any]

OBJECT: Json = {"type": "object"}


def _deep(depth: int) -> Json:
    held: Json = dict(OBJECT)
    for _ in range(depth):
        held = {"type": "object", "properties": {"x": held}}
    return held


# mode -> the tools that are listed
TOOLS: dict[str, list[Json]] = {
    "twice": [{"name": "a", "inputSchema": OBJECT}, {"name": "a", "inputSchema": OBJECT}],
    "names": [{"name": name, "inputSchema": OBJECT} for name in ("a.b", "has space/ü", "x" * 70, "")],
    "deep": [{"name": "deep", "inputSchema": _deep(60)}],
}
ONE = [{"name": "t", "inputSchema": OBJECT}]


def answer(mode: str, method: str, params: Json, count: int) -> Json | None:
    """Return the result of a request; None for no answer at all."""
    if method == "initialize":
        server = {"name": "hostile", "version": "1"}
        version = params["protocolVersion"]
        return (
            None
            if mode == "silent"
            else {"protocolVersion": version, "capabilities": {"tools": {}, "prompts": {}}, "serverInfo": server}
        )
    if method == "prompts/list" or (mode == "pages" and method == "tools/list"):
        kind, number = method.partition("/")[0], int(params.get("cursor") or 1)
        schema = {"inputSchema": OBJECT} if kind == "tools" else {}
        more = {"nextCursor": str(number + 1)} if number < 3 else {}
        return {kind: [{"name": f"{kind} {number}", **schema}], "_meta": {"page": number}, **more}
    if method == "tools/list":
        more = {"nextCursor": f"page {count}"} if mode == "endless" else {}
        return {"tools": TOOLS.get(mode, ONE), **more}
    if mode == "dies":
        os._exit(9)
    return {
        "isError": mode == "fails",
        "content": [] if mode == "fails" else [{"type": "text", "text": params["name"]}],
    }


def main() -> None:
    """Answer one request a line."""
    mode = sys.argv[1]
    for count, line in enumerate(sys.stdin):
        asked: Json = json.loads(line)
        if "id" not in asked:
            continue
        if asked["method"] not in ("initialize", "tools/list", "tools/call", "prompts/list"):
            told: Json | None = {"error": {"code": -32601, "message": "not known"}}
        else:
            result = answer(mode, asked["method"], asked.get("params") or {}, count)
            told = None if result is None else {"result": result}
        if told is not None:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **told}), flush=True)


if __name__ == "__main__":
    main()
