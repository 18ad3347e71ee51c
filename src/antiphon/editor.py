"""What an apply-patch tool asks for."""

from __future__ import annotations

from .tools.editor import ApplyPatchEditor, ApplyPatchOperation, ApplyPatchOperationType, ApplyPatchResult

__all__ = [
    "ApplyPatchEditor",
    "ApplyPatchOperation",
    "ApplyPatchOperationType",
    "ApplyPatchResult",
]
