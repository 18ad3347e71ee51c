"""What a runner or a gateway calls: any Responses request, any backend.

    settings, input, tools -> create parameters -> chat request -> backend -> chunks -> handler -> events, restored

`ChatCompletionsModel` is that path over one backend; `MultiProvider` finds a model by its name. Names are loaded when
first used: neither openai nor an SDK is imported before its objects are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.lazily import lazily

if TYPE_CHECKING:
    from .any_llm_responses import AnyLLMResponsesModel as AnyLLMResponsesModel
    from .call import CallModel as CallModel
    from .call import ModelCall as ModelCall
    from .chat import ChatCompletionsModel as ChatCompletionsModel
    from .chatcmpl_converter import Converter as Converter
    from .checks import EventsBroken as EventsBroken
    from .defaults import get_default_model as get_default_model
    from .defaults import set_default_openai_api as set_default_openai_api
    from .defaults import set_default_openai_client as set_default_openai_client
    from .defaults import set_default_openai_key as set_default_openai_key
    from .exchange import EventStream as EventStream
    from .exchange import Exchange as Exchange
    from .fallback import FallbackModel as FallbackModel
    from .interface import Model as Model
    from .interface import ModelProvider as ModelProvider
    from .interface import ModelResponse as ModelResponse
    from .interface import ModelTracing as ModelTracing
    from .multi_provider import MultiProvider as MultiProvider
    from .openai_chatcompletions import OpenAIChatCompletionsModel as OpenAIChatCompletionsModel
    from .openai_provider import OpenAIProvider as OpenAIProvider
    from .openai_responses import OpenAIResponsesModel as OpenAIResponsesModel
    from .params import create_params as create_params
    from .retry import ModelRetryAdvice as ModelRetryAdvice
    from .retry import ModelRetryAdviceRequest as ModelRetryAdviceRequest
    from .retry import ModelRetryBackoffSettings as ModelRetryBackoffSettings
    from .retry import ModelRetryNormalizedError as ModelRetryNormalizedError
    from .retry import ModelRetrySettings as ModelRetrySettings
    from .retry import RetryDecision as RetryDecision
    from .retry import RetryPolicy as RetryPolicy
    from .retry import RetryPolicyContext as RetryPolicyContext
    from .retry import retry_policies as retry_policies
    from .sdks import AnyLLMModel as AnyLLMModel
    from .sdks import AnyLLMProvider as AnyLLMProvider
    from .sdks import LitellmModel as LitellmModel
    from .sdks import LitellmProvider as LitellmProvider
    from .settings import ModelSettings as ModelSettings
    from .usage import InputTokensDetails as InputTokensDetails
    from .usage import OutputTokensDetails as OutputTokensDetails
    from .usage import RequestUsage as RequestUsage
    from .usage import Usage as Usage

# module -> its public names
_NAMES: dict[str, tuple[str, ...]] = {
    ".any_llm_responses": ("AnyLLMResponsesModel",),
    ".call": ("CallModel", "ModelCall"),
    ".chat": ("ChatCompletionsModel",),
    ".checks": ("EventsBroken",),
    ".chatcmpl_converter": ("Converter",),
    ".defaults": ("get_default_model", "set_default_openai_api", "set_default_openai_client", "set_default_openai_key"),
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

__getattr__, __dir__ = lazily(__name__, _NAMES)
