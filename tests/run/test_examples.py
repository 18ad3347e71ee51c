"""The programs in `docs/examples`, run as a reader would run them, with their whole output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
MISUSED: list[tuple[str, str]] = [
    (
        "resume.py yes",
        "no run waits in run.json: each is taken up once; begin one with `python docs/examples/approve.py`",
    ),
    ("resume.py", "usage: resume.py yes|no [FILE]"),
    ("resume.py maybe", "usage: resume.py yes|no [FILE]"),
]
MODULES = {"orders.py"}  # what programs share

WAITS = """\
  (find_order runs for A-17)
Order desk wants to call refund_order({"order_id": "A-17", "amount": 42})
The run waits in run.json.
"""
FAILED = (
    "WARNING: ChatCompletionsModel('replay/{}', profile='default', backend=ReplayBackend()) failed ({}): "
    "ChatCompletionsModel('replay/{}', profile='default', backend=ReplayBackend()) is asked\n"
)
LIMITED = FAILED.format(
    "rate-limit",
    "RateLimited: the provider answered 429: Rate limit reached for requests. Please try again in 1s. "
    "(rate_limit_exceeded)",
    "bad-gateway",
)

# name -> what is run, in this order in one folder, and all that it prints
CASES: dict[str, list[tuple[str, str]]] = {
    "triage": [
        (
            "triage.py",
            """\
Triage agent  handoff_call_item
Triage agent  handoff_output_item
Refund agent  tool_call_item
Refund agent  tool_call_output_item
Refund agent  message_output_item

Refund agent: 42 euros for order A-17 are on their way. Is there anything else?
3 requests; went to: refund desk
""",
        )
    ],
    "approved in a second process": [
        ("approve.py", WAITS),
        (
            "resume.py yes",
            """\
  (refund_order runs for A-17)
This is what I have: Order A-17: one cope, 42 euros, paid.; 42 euros for order A-17 are on their way.
""",
        ),
    ],
    "rejected in a second process": [
        ("approve.py", WAITS),
        (
            "resume.py no",
            "This is what I have: Order A-17: one cope, 42 euros, paid.; The shop does not pay this back.\n",
        ),
    ],
    "agents as tools": [
        (
            "agents_as_tools.py",
            """\
  Weather desk: tool_called
  Weather desk: tool_output
  Weather desk: message_output_created
reasoning_item
tool_call_item
tool_call_item
tool_call_output_item
tool_call_output_item
message_output_item

Your day in Paris: The tool says: 21 degrees and sun in Paris; The next train to Paris leaves at 10:15.
4 requests, those of the inner agent included
""",
        )
    ],
    "a session, of two runs and of two processes": [
        (
            "session.py",
            """\
Archivist is given: user
An antiphon is a call and its response. You called: What is an antiphon?
Archivist is given: user | assistant | user
An antiphon is a call and its response. You called: And who sings it?
4 items are kept
""",
        ),
        (
            "session.py",
            """\
Archivist is given: user | assistant | user | assistant | user
An antiphon is a call and its response. You called: What is an antiphon?
Archivist is given: user | assistant | user | assistant | user | assistant | user
An antiphon is a call and its response. You called: And who sings it?
8 items are kept
""",
        ),
    ],
    "streaming": [
        (
            "streaming.py",
            """\
[Weather desk]
  get_weather({"city": "Paris"})
  get_weather: 0 %
  get_weather: 50 %
  get_weather: 100 %
  -> 21 degrees and sun in Paris
The tool says: 21 degrees and sun in Paris
2 turns, 128 tokens
""",
        )
    ],
    "spans": [
        (
            "spans.py",
            """\
invoke_workflow Weather
  invoke_agent Weather desk
    chat replay/tools (15 tokens)
    execute_tool get_weather
    chat replay/tools (9 tokens)
""",
        )
    ],
    "fallback": [
        (
            "fallback.py",
            LIMITED
            + FAILED.format(
                "bad-gateway", 'ServerFailed: the provider answered 502: a web page, "502 Bad Gateway"', "text"
            )
            + "An antiphon is a call and its response. You called: good evening\n"
            + "3 requests\n"
            + LIMITED
            + "ServerFailed: status 502\n",
        )
    ],
    "structured output": [
        (
            "structured.py",
            """\
Gaudete, 16th century, for soprano
['text']
ModelBehaviorError: Invalid JSON when parsing the output as Piece: expected value at line 1 column 1
""",
        )
    ],
}

# name -> the package that it needs, beyond those that the tests do
NEEDS = {"spans": "opentelemetry.sdk"}

# No keys; and whoever goes to the network all the same finds a proxy that is not there.
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.endswith(("_KEY", "_TOKEN"))},
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9"),
    "PYTHONIOENCODING": "utf-8",
}


@pytest.mark.parametrize("case", CASES)
def test_an_example_prints_what_it_should(case: str, tmp_path: Path) -> None:
    if case in NEEDS:
        pytest.importorskip(NEEDS[case], reason="the example is for those who have that package")
    for command, expected in CASES[case]:
        program, *arguments = command.split()
        ran = subprocess.run(
            [sys.executable, "-W", "error", str(EXAMPLES / program), *arguments],
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
        )
        assert (ran.stdout.decode().replace("\r\n", "\n"), ran.returncode) == (expected, 0), command


@pytest.mark.parametrize(("command", "said"), MISUSED)
def test_an_example_that_is_used_wrongly_says_so(command: str, said: str, tmp_path: Path) -> None:
    """In one line: an example that is run twice is what newcomers do."""
    program, *arguments = command.split()
    ran = subprocess.run(
        [sys.executable, str(EXAMPLES / program), *arguments],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", f"{said}\n")


def test_every_example_is_run() -> None:
    run = {command.split()[0] for commands in CASES.values() for command, _ in commands}
    assert {path.name for path in EXAMPLES.glob("*.py")} == run | MODULES
