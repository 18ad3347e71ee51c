"""Writes exchanges to a folder and reads them back: a raw body `NAME.sse`, and beside it `NAME.meta.json`.

No key and no header of a request is in it. A folder of other recordings in this form is read too: each is judged by
itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from antiphon.errors import BadInput
from antiphon_conformance.exchange import Exchange, Piece
from antiphon_conformance.read import Json, listed, mapping, number, text
from antiphon_conformance.recordings import META, SUFFIXES

RUN = "run.json"
FORMAT = 1
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}
COMPANIONS: tuple[str, ...] = ("twin", "beside", "after")
_LONGEST = 1e9  # seconds
_BODY = ".sse"


def write_run(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write what is known of a run as a whole. Raises BadInput where the folder cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / RUN).write_text(_json({"format": FORMAT, **facts}), encoding="utf-8")
    except OSError as problem:
        raise BadInput(f"cannot write to {folder}: {problem.strerror}; give a folder that can be written") from None


def write(folder: Path, name: str, exchange: Exchange) -> None:
    """Write one exchange, and its companions as `NAME.twin` and so on."""
    meta: Json = {
        "case": name,
        "path": PATHS[exchange.api],
        "request": dict(exchange.request),
        "status": exchange.status,
        "headers": dict(exchange.headers),
        "wall_s": exchange.seconds,
        "first_byte_s": exchange.pieces[0].at if exchange.pieces else None,
        "bytes": len(exchange.body),
        "pieces": [[piece.at, len(piece.data)] for piece in exchange.pieces],
        "failure": exchange.failure,
        "message": exchange.message,
        "left": exchange.left,
        "refusal": exchange.refusal,
        "companions": [one for one in COMPANIONS if getattr(exchange, one) is not None],
    }
    (folder / f"{name}{_BODY}").write_bytes(exchange.body)
    (folder / f"{name}{META}").write_text(_json(meta), encoding="utf-8")
    for companion, other in (("twin", exchange.twin), ("beside", exchange.beside), ("after", exchange.after)):
        if other is not None:
            write(folder, f"{name}.{companion}", other)


def read_run(folder: Path) -> Json:
    """Return what is known of the recorded run; {} for a folder of other recordings. Raises BadInput for neither."""
    if not folder.is_dir():
        raise BadInput(f"{folder} is no folder: give one that was written by --record{_of_events(folder)}")
    path = folder / RUN
    if not path.exists():
        if not names(folder):
            raise BadInput(f"{folder} holds no recording: neither {RUN} nor any *{META}{_of_events(folder)}")
        return {}
    held = _read_json(path)
    if held.get("format") != FORMAT:
        raise BadInput(f"{path} has format {held.get('format')!r}; this version reads {FORMAT}")
    return held


def _of_events(path: Path) -> str:
    """Return what judges a file or folder that is no recording of a server, where it may hold streams of events."""
    files = [path] if path.is_file() else list(path.glob("**/*")) if path.is_dir() else []
    if not any(one.suffix in SUFFIXES for one in files):
        return ""
    return f"; streams of events are judged by --recordings {path}"


def names(folder: Path) -> list[str]:
    """Return the names of the exchanges in a folder, without companions."""
    found = sorted(path.name.removesuffix(META) for path in folder.glob(f"*{META}"))
    return [name for name in found if name.rpartition(".")[2] not in COMPANIONS]


def read(folder: Path, name: str) -> Exchange | None:
    """Return the exchange called `name`, with its companions, or None. Raises BadInput for a file that is broken."""
    if not (folder / f"{name}{META}").exists():
        return None
    meta = _read_json(folder / f"{name}{META}")
    held = [companion for companion in COMPANIONS if companion in listed(meta.get("companions"))]
    others = {companion: read(folder, f"{name}.{companion}") for companion in held}
    one = _read_one(folder, name, meta)
    return replace(one, twin=others.get("twin"), beside=others.get("beside"), after=others.get("after"))


def _read_one(folder: Path, name: str, meta: Json) -> Exchange:
    try:
        body = (folder / f"{name}{_BODY}").read_bytes()
    except OSError as problem:
        raise BadInput(f"{folder / name}{_BODY} cannot be read: {problem.strerror}") from None
    headers = {key.lower(): str(value) for key, value in mapping(meta.get("headers")).items()}
    return Exchange(
        "responses" if "responses" in text(meta.get("path")) else "chat",
        mapping(meta.get("request")),
        number(meta.get("status")),
        headers,
        _pieces(body, meta),
        _one_of(meta.get("failure"), ("connect", "broken", "silent", "late", "too_long")),
        text(meta.get("message")),
        _seconds(meta.get("wall_s")),
        meta.get("left") is True or "cancelled_after_data_lines" in meta,
        _one_of(meta.get("refusal"), ("model", "request", "length")),
    )


def _pieces(body: bytes, meta: Json) -> tuple[Piece, ...]:
    """Return the body in the pieces in which it came, as one where that is not known."""
    told = [(*listed(one), None, None)[:2] for one in listed(meta.get("pieces"))]
    cuts = [(_seconds(at), max(number(size) or 0, 0)) for at, size in told]
    if sum(size for _, size in cuts) != len(body):
        return (Piece(_seconds(meta.get("first_byte_s")), body),) if body else ()
    pieces: list[Piece] = []
    start = 0
    for at, size in cuts:
        pieces.append(Piece(at, body[start : start + size]))
        start += size
    return tuple(pieces)


def _seconds(value: object) -> float:
    """Return a time that a file may have, 0 for anything else."""
    return float(value) if isinstance(value, int | float) and 0 <= value < _LONGEST else 0.0


def _one_of(value: object, allowed: tuple[Any, ...]) -> Any:
    """Return `value` if it is one of `allowed`, else ""."""
    return value if value in allowed else ""


def _read_json(path: Path) -> Json:
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        raise BadInput(f"{path} cannot be read: {problem}") from None
    return mapping(held)


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
