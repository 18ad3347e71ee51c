"""What a runner or a gateway calls: any Responses request, any backend.

    settings, input, tools -> create parameters -> chat request -> backend -> chunks -> handler -> events, restored

`ChatCompletionsModel` is that path over one backend; `MultiProvider` finds a model by its name. Names are loaded when
first used: neither openai nor an SDK is imported before its objects are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.lazily import lazily

if TYPE_CHECKING:
    from .any_llm_responses import AnyLLMResponsesModel
    from .call import CallModel, ModelCall
    from .chat import ChatCompletionsModel
    from .chatcmpl_converter import Converter
    from .defaults import (
        get_default_model,
        set_default_openai_api,
        set_default_openai_client,
        set_default_openai_key,
    )
    from .errors import EventsBroken
    from .exchange import EventStream, Exchange
    from .fallback import FallbackModel
    from .interface import Model, ModelProvider, ModelResponse, ModelTracing
    from .multi_provider import MultiProvider
    from .openai_chatcompletions import OpenAIChatCompletionsModel
    from .openai_provider import OpenAIProvider
    from .openai_responses import OpenAIResponsesModel
    from .params import create_params
    from .retry import (
        ModelRetryAdvice,
        ModelRetryAdviceRequest,
        ModelRetryBackoffSettings,
        ModelRetryNormalizedError,
        ModelRetrySettings,
        RetryDecision,
        RetryPolicy,
        RetryPolicyContext,
        retry_policies,
    )
    from .sdks import AnyLLMModel, AnyLLMProvider, LitellmModel, LitellmProvider
    from .settings import ModelSettings
    from .usage import InputTokensDetails, OutputTokensDetails, RequestUsage, Usage

# module -> its public names
_NAMES: dict[str, tuple[str, ...]] = {
    ".any_llm_responses": ("AnyLLMResponsesModel",),
    ".call": ("CallModel", "ModelCall"),
    ".chat": ("ChatCompletionsModel",),
    ".chatcmpl_converter": ("Converter",),
    ".defaults": (
        "get_default_model",
        "set_default_openai_api",
        "set_default_openai_client",
        "set_default_openai_key",
    ),
    ".errors": ("EventsBroken",),
    ".exchange": ("EventStream", "Exchange"),
    ".fallback": ("FallbackModel",),
    ".interface": ("Model", "ModelProvider", "ModelResponse", "ModelTracing"),
    ".multi_provider": ("MultiProvider",),
    ".openai_chatcompletions": ("OpenAIChatCompletionsModel",),
    ".openai_provider": ("OpenAIProvider",),
    ".openai_responses": ("OpenAIResponsesModel",),
    ".params": ("create_params",),
    ".retry": (
        "ModelRetryAdvice",
        "ModelRetryAdviceRequest",
        "ModelRetryBackoffSettings",
        "ModelRetryNormalizedError",
        "ModelRetrySettings",
        "RetryDecision",
        "RetryPolicy",
        "RetryPolicyContext",
        "retry_policies",
    ),
    ".sdks": ("AnyLLMModel", "AnyLLMProvider", "LitellmModel", "LitellmProvider"),
    ".settings": ("ModelSettings",),
    ".usage": ("InputTokensDetails", "OutputTokensDetails", "RequestUsage", "Usage"),
}
__all__ = [
    "AnyLLMModel",
    "AnyLLMProvider",
    "AnyLLMResponsesModel",
    "CallModel",
    "ChatCompletionsModel",
    "Converter",
    "EventStream",
    "EventsBroken",
    "Exchange",
    "FallbackModel",
    "InputTokensDetails",
    "LitellmModel",
    "LitellmProvider",
    "Model",
    "ModelCall",
    "ModelProvider",
    "ModelResponse",
    "ModelRetryAdvice",
    "ModelRetryAdviceRequest",
    "ModelRetryBackoffSettings",
    "ModelRetryNormalizedError",
    "ModelRetrySettings",
    "ModelSettings",
    "ModelTracing",
    "MultiProvider",
    "OpenAIChatCompletionsModel",
    "OpenAIProvider",
    "OpenAIResponsesModel",
    "OutputTokensDetails",
    "RequestUsage",
    "RetryDecision",
    "RetryPolicy",
    "RetryPolicyContext",
    "Usage",
    "create_params",
    "get_default_model",
    "retry_policies",
    "set_default_openai_api",
    "set_default_openai_client",
    "set_default_openai_key",
]

__getattr__, __dir__ = lazily(__name__, _NAMES)
