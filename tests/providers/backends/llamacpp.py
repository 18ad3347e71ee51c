"""llama.cpp's own server with a scripted model, run while a block lasts, where both are on this machine."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .loopback import free_port

SERVER = Path(__file__).parents[4] / "shared" / "backends"
MISSING = [
    what
    for what, there in (
        ("xllamacpp", importlib.util.find_spec("xllamacpp") is not None),
        ("the scripted model beside the checkout", SERVER.is_dir()),
    )
    if not there
]
needs_llamacpp = pytest.mark.skipif(bool(MISSING), reason=f"not there: {', '.join(MISSING)}")


@contextmanager
def llamacpp(template: Path | None = None, context: int = 2048, model: Path | None = None) -> Iterator[str]:
    """Run the server, with a chat template or a model of one's own and that many tokens of context; gives its URL."""
    port = free_port()
    command = [sys.executable, str(SERVER / "llamacpp_serve.py"), str(model or SERVER / "scripted.gguf"), str(port)]
    process = subprocess.Popen(
        [*command, str(template or "-"), str(context)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_until_up(f"http://127.0.0.1:{port}", process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait(10)


def _wait_until_up(url: str, process: subprocess.Popen[bytes]) -> None:
    """Return once the server answers that it is well; half a minute at most."""
    for _ in range(300):
        assert process.poll() is None, "the server has ended"
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.1)
    raise AssertionError("the server did not come up")
