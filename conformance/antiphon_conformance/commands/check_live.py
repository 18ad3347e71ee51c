"""`antiphon check --url`: the part of the command that asks a server."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from antiphon.errors import AuthenticationFailed, BadInput
from antiphon.stream.faults import redact
from antiphon.variable import key_in

if TYPE_CHECKING:
    from antiphon_conformance.live import Budget, Step
    from antiphon_conformance.results import SuiteReport

USUAL_KEY = "OPENAI_API_KEY"


def live_report(
    outputs: Any,
    url: str,
    model: str,
    api: str,
    profile: str | None,
    probes: tuple[str, ...],
    record: Path | None,
    replay: Path | None,
    api_key_env: str | None,
    budget: str | None,
    strict: bool,
) -> SuiteReport:
    """Return what the probes found. What will be sent is said beforehand, on standard error. Raises BadInput."""
    from antiphon_conformance.live import LiveOptions, check_live, describe

    match api:
        case "chat" | "responses":
            pass
        case _:
            raise BadInput(f"--api {api}: it is chat or responses")
    if replay is None:
        refuse_no_url(url)
    options = LiveOptions(
        url,
        model,
        api,
        key_in(api_key_env, "--api-key-env") if api_key_env else os.environ.get(USUAL_KEY) or None,
        profile=profile,
        probes=probes,
        record=record,
        replay=replay,
        budget=parse_budget(budget),
        strict=strict,
    )
    typer.echo(describe(options), err=True)
    try:
        return check_live(options, _told if sys.stderr.isatty() else None)
    except AuthenticationFailed as problem:
        raise AuthenticationFailed(f"{problem}; {_key_advice(api_key_env, options.api_key)}") from None


def refuse_no_url(url: str) -> None:
    """Raise BadInput for what is no URL of a server."""
    if not url.lower().startswith(("http://", "https://")):
        raise BadInput(redact(f"--url {url}: a URL begins with http:// or https://, such as http://localhost:8000/v1"))


def _key_advice(variable: str | None, key: str | None) -> str:
    """Return how another key is given."""
    if variable is None and key is None:
        return f"the key is taken from {USUAL_KEY}, which is not set; --api-key-env names another variable"
    return f"the key is that of {variable or USUAL_KEY}; --api-key-env names another variable"


def parse_budget(written: str | None) -> Budget:
    """Return the limits in `written`, such as "requests=40,tokens=20000,seconds=300"; "none" is no limit.

    Raises BadInput for a limit that is none.
    """
    from antiphon_conformance.live import Budget

    made = Budget()
    for one in (written or "").split(","):
        name, _, value = (part.strip() for part in one.partition("="))
        match name:
            case "":
                continue
            case "requests" | "tokens":
                made = replace(made, **{name: None if value == "none" else int(_number(one, value))})
            case "seconds":
                made = replace(made, seconds=None if value == "none" else _number(one, value))
            case _:
                raise BadInput(
                    f"--budget {one.strip()}: there are requests=N, tokens=N and seconds=N, with commas between"
                )
    return made


def _number(one: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise BadInput(f"--budget {one.strip()}: the limit is a number above 0, or none")
    return number


def _told(step: Step) -> None:
    outcome = step.outcome.value if step.outcome is not None else "…"
    typer.echo(f"[{step.number}/{step.total}] {step.probe}: {outcome}", err=True)
