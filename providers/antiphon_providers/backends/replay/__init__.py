"""The backend without a model: built-in scenarios, recordings, and short answers made from the request."""

from .backend import ReplayBackend

__all__ = ["ReplayBackend"]
