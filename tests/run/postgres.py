"""A PostgreSQL server of its own for tests: in a temporary folder, on a unix socket, stopped by its process."""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

STARTED_WITHIN = 30.0


def missing() -> str | None:
    """Return why there is no server to be had; None where there is one."""
    absent = [one for one in ("initdb", "postgres") if shutil.which(one) is None]
    if absent:
        return f"{' and '.join(absent)} are not on the path"
    return None if os.geteuid() or _other_user() else "postgres refuses root, and there is no user postgres or nobody"


@contextmanager
def server() -> Generator[Path]:
    """Yield the folder of the socket, port 5432, user and database `postgres`, no password."""
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # short: the path of a socket has 107 bytes at most
    user = None if os.geteuid() else _other_user()
    if user is not None:
        shutil.chown(folder, user)
    process: subprocess.Popen[bytes] | None = None
    try:
        data = str(folder / "data")
        _run(["initdb", "-D", data, "-U", "postgres", "--auth=trust", "--no-sync", "-E", "UTF8"], user)
        process = _start(data, folder, user)
        _wait(folder, process)
        yield folder
    finally:
        if process is not None:
            process.terminate()
            process.wait(timeout=STARTED_WITHIN)
        shutil.rmtree(folder, ignore_errors=True)


def _other_user() -> str | None:
    known = {one.pw_name for one in pwd.getpwall()} - {getpass.getuser()}
    return next((name for name in ("postgres", "nobody") if name in known), None)


def _run(command: list[str], user: str | None) -> None:
    subprocess.run([shutil.which(command[0]) or command[0], *command[1:]], user=user, check=True, capture_output=True)


def _start(data: str, folder: Path, user: str | None) -> subprocess.Popen[bytes]:
    settings = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", f"unix_socket_directories={folder}"]
    command = [shutil.which("postgres") or "postgres", "-D", data, *settings]
    return subprocess.Popen(command, user=user, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _wait(folder: Path, process: subprocess.Popen[bytes]) -> None:
    import socket

    until = time.monotonic() + STARTED_WITHIN
    while time.monotonic() < until and process.poll() is None:
        with socket.socket(socket.AF_UNIX) as one:
            if not one.connect_ex(str(folder / ".s.PGSQL.5432")):
                return
        time.sleep(0.05)
    raise RuntimeError("postgres did not start")
