"""The errors of antiphon: one tree under `AntiphonError`.

What a provider does wrong ends as `response.failed`; what a caller or our own code does wrong raises one of these.
"""

from __future__ import annotations


class AntiphonError(Exception):
    """The base of all errors that antiphon raises by itself."""


class BadInput(AntiphonError):
    """What was given cannot be read; the message says what came, what is allowed and where."""


class ProfileNotFound(BadInput):
    """No profile has that name; the message lists the names that are known."""


class SourceError(AntiphonError):
    """The source of chunks failed by what it sent: an error object, a cut stream, a line that is not JSON.

    `code` is the code of `response.error`. An exception that the source itself raised is kept as it was instead.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class StrictError(SourceError):
    """Something was seen that only `strict=True` refuses: content that has no place in the Responses stream."""
