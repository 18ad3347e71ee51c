"""Who calls: the key of a request, compared in constant time, and the owner of what is stored for it."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from antiphon.errors import BadInput

from .config import GatewayConfig, read_text
from .errors import ApiError

_NAMED = re.compile(r"([\w.-]{1,64}):\s+(\S+)")
SHORTEST = 8  # characters of a key
_WAY = 'a good one is what `python3 -c "import secrets; print(secrets.token_urlsafe(24))"` prints'


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request. `owner`: what its stored responses belong to; it tells nothing about the key. `key`: as sent."""

    owner: str
    key: str | None = None

    def __repr__(self) -> str:
        return f"Caller({self.owner[:8]!r})"


class Keys:
    """The keys that callers may use; none: everybody may call, and all share what is stored.

    A line `name: key` of a key file gives the key's owner a name, so that its responses stay when the key is changed.
    """

    def __init__(self, lines: Iterable[tuple[str, str]], *, own_by_key: bool = False) -> None:
        self._owners: list[tuple[bytes, str]] = []
        self._own_by_key = own_by_key  # keys are passed on: each is an owner, although none is checked here
        for place, line in lines:
            self._add(place, line.strip())

    @classmethod
    def of(cls, config: GatewayConfig) -> Keys:
        """Return the keys of the configuration. Raises BadInput for one that is too short to be one."""
        given = enumerate(config.api_keys, 1)
        lines = [(f"key {number} of --api-key or api_keys", key.get_secret_value()) for number, key in given]
        if config.api_key_file is not None:
            found = enumerate(read_text(config.api_key_file, "api_key_file").splitlines(), 1)
            place = f"api_key_file {config.api_key_file}, line"
            lines += [(f"{place} {n}", line) for n, line in found if line.strip() and not line.startswith("#")]
            if not lines:
                raise BadInput(f"api_key_file: {config.api_key_file} holds no key; one a line is expected")
        return cls(lines, own_by_key=any(one.pass_caller_key for one in config.backends.values()))

    def __bool__(self) -> bool:
        return bool(self._owners)

    def caller(self, headers: Mapping[str, str]) -> Caller:
        """Return who sent a request with these headers. Raises ApiError 401 for a missing or wrong key."""
        key = _key_in(headers)
        if self._own_by_key and key is not None and not key.isascii():
            raise _refused("the API key has characters that no backend takes", "invalid_api_key")
        if not self._owners:
            return Caller(_digest(f"key {key}") if key and self._own_by_key else "", key)
        if key is None:
            raise _refused("no API key came: send it as 'Authorization: Bearer KEY'", "missing_api_key")
        owner = self._owner(key)
        if owner is None:
            raise _refused("the API key is wrong", "invalid_api_key")
        return Caller(owner, key)

    def _add(self, place: str, line: str) -> None:
        named = _NAMED.fullmatch(line)
        name, key = named.groups() if named else (None, line)
        fault = _fault(key)
        if fault:
            raise BadInput(f"{place}: the API key {fault}; {_WAY}")
        owner = _digest(f"name {name}" if name else f"key {key}")
        self._owners.append((_hashed(key), owner))

    def _owner(self, key: str) -> str | None:
        """Compare with all keys, so that the time does not tell which one was nearly right."""
        hashed, found = _hashed(key), None
        for known, owner in self._owners:
            if hmac.compare_digest(known, hashed):
                found = owner
        return found


def _fault(key: str) -> str:
    """Return why that is no key, "" where it is one."""
    if len(key) < SHORTEST:
        return f"has {len(key)} characters, and {SHORTEST} are the least"
    if not key.isascii():
        return "has characters that are not ASCII, which no header carries"
    return "has blanks in it, which no header carries" if any(one.isspace() for one in key) else ""


def _key_in(headers: Mapping[str, str]) -> str | None:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and key.strip():
        return key.strip()
    return headers.get("api-key") or headers.get("x-api-key") or None


def _refused(message: str, code: str) -> ApiError:
    return ApiError(401, message, code=code, headers={"WWW-Authenticate": "Bearer"})


def _hashed(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogateescape")).digest()


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
