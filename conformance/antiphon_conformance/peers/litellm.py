"""LiteLLM: the bridge that serves /responses over a chat backend.

Source: litellm 1.110, `LiteLLMCompletionTransformationHandler`, which wraps its stream so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from . import imported

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionChunk

PACKAGE = "litellm"


def convert(chunks: Iterator[ChatCompletionChunk]) -> Iterator[Any]:
    """Yield the events that its bridge makes of `chunks`."""
    imported("litellm", PACKAGE).suppress_debug_info = True  # else it prints a list of providers for each failure
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)  # it writes to standard error by itself
    bridge = imported("litellm.responses.litellm_completion_transformation.streaming_iterator", PACKAGE)
    wrapper = imported("litellm", PACKAGE).CustomStreamWrapper(
        completion_stream=chunks, model="case-model", custom_llm_provider="openai", logging_obj=_logging()
    )
    yield from bridge.LiteLLMCompletionStreamingIterator(
        model="case-model",
        litellm_custom_stream_wrapper=wrapper,
        request_input="Hi",
        responses_api_request={},
        custom_llm_provider="openai",
    )


def _logging() -> Any:
    return imported("litellm.litellm_core_utils.litellm_logging", PACKAGE).Logging(
        model="case-model",
        messages=[{"role": "user", "content": "Hi"}],
        stream=True,
        call_type="completion",
        start_time=datetime.now(),
        litellm_call_id="case",
        function_id="case",
    )
