"""`ModelSettings`, under the name of the module that users of the OpenAI Agents SDK import it from."""

from .models.settings import ModelSettings

__all__ = ["ModelSettings"]
