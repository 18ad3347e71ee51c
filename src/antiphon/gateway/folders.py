"""The folder that the processes behind one port share: it is gone when they are, or once the next ones begin.

A process that is killed removes nothing. Each holds a lock on its folder, which the system takes back from the dead:
a folder that nobody holds is left over, whatever numbers processes have now, or in another container.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

PREFIX = "antiphon-"
_LOCK = "lock"


@contextmanager
def shared_folder() -> Generator[Path]:
    """Give a new folder among the temporary files, and remove it at the end; those that killed processes left go first."""
    remove_left()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name, _made_lock(Path(name)):
        yield Path(name)


@contextmanager
def held(folder: Path) -> Generator[None]:
    """Keep a folder that another process made from being taken for one that is left over."""
    number = _opened(folder / _LOCK)
    try:
        if number is not None:
            _locked(number, alone=False)
        yield
    finally:
        if number is not None:
            os.close(number)


def remove_left() -> None:
    """Remove this user's folders that nobody holds. One that cannot be removed stays."""
    if sys.platform == "win32":
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        number = _opened(folder / _LOCK)
        if number is None:
            continue
        try:
            if os.fstat(number).st_uid == os.geteuid() and not folder.is_symlink() and _locked(number, alone=True):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(number)


@contextmanager
def _made_lock(folder: Path) -> Generator[None]:
    """Make the lock of a folder; it is held before others can see it."""
    fresh = folder / f"{_LOCK}.new"
    fresh.touch(mode=0o600)
    number = _opened(fresh)
    try:
        if number is not None:
            _locked(number, alone=False)
            fresh.replace(folder / _LOCK)
        yield
    finally:
        if number is not None:
            os.close(number)


def _opened(path: Path) -> int | None:
    """Return the descriptor of a lock, None where there is none. It goes to no child."""
    if sys.platform == "win32":
        return None
    with suppress(OSError):
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    return None


def _locked(number: int, *, alone: bool) -> bool:
    if sys.platform != "win32":
        with suppress(OSError):  # somebody holds it, or the file system knows no locks
            fcntl.flock(number, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
            return True
    return False
