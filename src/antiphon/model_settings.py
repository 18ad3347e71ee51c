"""`ModelSettings`, under the name of the module that users of the OpenAI Agents SDK import it from."""

from .models.settings import MCPToolChoice, ModelSettings

__all__ = ["MCPToolChoice", "ModelSettings"]
