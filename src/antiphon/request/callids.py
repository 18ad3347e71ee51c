"""Tool call ids, as the backend takes them: its own as they are, others mapped, each assistant message's apart."""

from __future__ import annotations

import re
from hashlib import sha256

from .content import Scope
from .read import Json
from .report import BadRequest

# What a made id looks like; the first that fits the profile's pattern is used. Mistral wants nine letters or digits.
FORMS = ("call_{:.24}", "{:.9}", "{:.24}", "{:.40}")


class CallIds:
    """Maps the ids of a history. An id stays as it is where it fits and its message has no other call of it."""

    def __init__(self, scope: Scope) -> None:
        pattern = scope.profile.call_id_pattern
        self._scope = scope
        self.fits = re.compile(pattern).fullmatch if pattern is not None else None
        self.made: set[str] = set()  # all ids that were made
        self._mapped: dict[str, str] = {}  # one of the client's -> one of ours
        self._originals: dict[str, str] = {}
        self._message: Json | None = None  # the one that a call was given to last, and the ids of its calls
        self._taken: set[str] = set()
        self._seen = 0
        self._salts: dict[str, int] = {}  # so that many calls of one id do not try the same ones again

    def give(self, call_id: str, path: str, message: Json) -> str:
        """Return the id on the chat side for `call_id`; no call that the assistant message has already is of it."""
        taken = self._taken_in(message)
        chat_id = self._mapped.get(call_id, call_id)
        return chat_id if chat_id not in taken and self._is_fit(chat_id) else self._made(call_id, path, taken)

    def _taken_in(self, message: Json) -> set[str]:
        """Return the ids of the calls in the message. Each of them is looked at once."""
        if self._message is not message:
            self._message, self._taken, self._seen = message, set[str](), 0
        calls = message["tool_calls"]
        for number in range(self._seen, len(calls)):
            self._taken.add(calls[number]["id"])
        self._seen = len(calls)
        return self._taken

    def originals(self) -> Json:
        """Return id on the chat side -> the client's, for those that are not the same."""
        return self._originals

    def _is_fit(self, call_id: str) -> bool:
        return bool(call_id) and (self.fits is None or self.fits(call_id) is not None)

    def _made(self, call_id: str, path: str, taken: set[str]) -> str:
        fits = self._is_fit(call_id)
        made, salt = self._free(call_id, path, taken)
        why = "another call of the message has it" if fits else "the backend takes no such id"
        self._scope.report.changed(f"{path}.call_id", repr(call_id), repr(made), why)
        self._salts[call_id] = salt
        self.made.add(made)
        if call_id:
            self._originals[made] = call_id
        if call_id and not fits:
            self._mapped[call_id] = made
        return made

    def _free(self, call_id: str, path: str, taken: set[str]) -> tuple[str, int]:
        """Return an id that fits and is nobody else's, and the salt that made it."""
        salt = self._salts.get(call_id, 0)
        while True:
            made = self._fitting(f"{salt}\0{call_id}", path)
            if made not in taken and self._originals.get(made, call_id) == call_id:
                return made, salt
            salt += 1

    def _fitting(self, seed: str, path: str) -> str:
        hashed = sha256(seed.encode()).hexdigest()
        for form in FORMS:
            made = form.format(hashed)
            if self._is_fit(made):
                return made
        pattern = self._scope.profile.call_id_pattern
        raise BadRequest(f"{path}.call_id", f"no id can be made that matches the profile's {pattern!r}")
