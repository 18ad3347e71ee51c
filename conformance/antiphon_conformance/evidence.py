"""The recordings that rules rest on, by what they show. Paths are those of the corpus of recordings."""

from __future__ import annotations

from .rule import Client, Recording, Schema

TEXT = Recording("responses/openai/llm--test-openai-responses-test-responses-basic-streaming.jsonl")
TWO_MESSAGES = Recording("responses/openai/mirascope--openai-gpt-4o-responses-stream--1.jsonl")
REFUSAL = Recording("responses/openai/mirascope--openai-gpt-4o-responses-async-stream.jsonl")
ANNOTATIONS = Recording(
    "responses/openai/langchain-openai-1.7.4--langchain-openai-1.7.4-test-web-search.jsonl",
)
CALL = Recording("responses/openai/mirascope--llm-test-model-context-resume-stream-async-exports-genai-span.jsonl")
PARALLEL = Recording("responses/openai/rig--streaming-grammar-parallel-tool-calls.jsonl")
NO_ARGUMENTS = Recording(
    "responses/openai/ruby_llm--nano-can-use-tools-without-parameters-in-multi-turn-streaming-conversations.jsonl",
)
CUSTOM = Recording("responses/openai/langchain-openai-1.7.4--langchain-openai-1.7.4-test-custom-tool.jsonl")
REASONING = Recording("responses/openai/rig--streaming-grammar-reasoning-then-text.jsonl")
REASONING_CALL = Recording("responses/openai/llm-openai-plugin--test-openai-test-tools.jsonl")
SUMMARIES = Recording("responses/openai/openinference--agno-agent-run-reasoning-stream.jsonl")
MIXTURE = Recording("responses/openai/langchain-openai-1.7.4--langchain-openai-1.7.4-test-phase-streaming.jsonl")
RAW_REASONING = Recording(
    "responses/deepseek/pydantic-ai--test-deepseek-responses-test-deepseek-responses-function-tool-stream.jsonl",
)
QUEUED = Recording(
    "responses/openai/pydantic-ai--test-openai-responses-test-background-mode-streaming-continuation-vcr.jsonl",
)
CUT_TEXT = Recording("responses/openai/ddtrace--v1-response-stream-incomplete.jsonl")
CUT_CALL = Recording("responses/openai/mirascope--openai-responses-handles-refusal-for-stream.jsonl")
CUT_REASONING = Recording("responses/openai/rig--streaming-grammar-incomplete-max-output-tokens.jsonl")
ERROR = Recording("responses/openai/vercel-ai--openai-openai-error.jsonl")
HOSTED_SEARCH = Recording("responses/openai/prism--openai-stream-with-provider-tool-1.jsonl")
HOSTED_CODE = Recording("responses/openai/vercel-ai--openai-openai-code-interpreter-tool.jsonl")
HOSTED_MCP = Recording("responses/openai/vercel-ai--openai-openai-mcp-tool.jsonl")
LOGPROBS = Recording("responses/lmstudio/vercel-ai--open-responses-lmstudio-tool-call.2.jsonl")

# Streams of other servers, each of which breaks some rules.
COPILOT = Recording("responses/github-copilot/rig--reasoning-roundtrip-streaming.jsonl")
CODEX = Recording("responses/chatgpt-codex/rig--streaming-tools-tool-call-completed-response-without-output.jsonl")
MANTLE = Recording(
    "responses/bedrock-mantle/"
    "ruby_llm--roviders-bedrock-mantle-responses-chat-streams-through-the-responses-surface.jsonl",
)
OVERLAP = Recording(
    "responses/openrouter/pydantic-ai--test-openai-responses-test-openai-responses-raw-cot-stream-openrouter.jsonl",
)
GROK = Recording("responses/xai/vercel-ai--xai-xai-text-with-reasoning-streaming.jsonl")
GROK_SEARCH = Recording("responses/xai/vercel-ai--xai-xai-web-search-tool.jsonl")

# Chunk streams, for the rules that compare events with chunks.
CHAT_TEXT = Recording("chat/openai/crewai--openai-test-openai-streaming-cached-prompt-tokens.jsonl")
CHAT_CALLS = Recording("chat/openai/lmnr--test-functions-test-open-ai-function-calls-tools-streaming-parallel.jsonl")
CHAT_REASONING = Recording("chat/avian/fantasy--avian-kimi-multi-tool-streaming--1.jsonl")
CHAT_ERROR = Recording("chat/groq/pydantic-ai--test-groq-test-tool-use-failed-error-streaming.jsonl")
CHAT_LENGTH = Recording("chat/mistral/rig--tool-truncation-matrix-streaming-mistral-small-mid-model.jsonl")


def sdk(place: str) -> Client:
    """Return the source: openai-python's own accumulator, `ResponseStreamState.accumulate_event`, of 3.57."""
    return Client("openai-python", f"ResponseStreamState.accumulate_event {place}")


def types(place: str) -> Schema:
    """Return the source: the published types, as openai-python 3.57 has them."""
    return Schema(f"openai.types.responses.{place}")


# Chunk streams of the real API, for the rules about what a chat backend answers.
CHAT_LOGPROBS = Recording("chat/openai/chatlas--test-provider-openai-completions-test-openai-logprobs.jsonl")
CHAT_TWO_CHOICES = Recording("chat/openai/ddtrace--litellm-completion-stream-multiple-choices-exclude-usage.jsonl")
CHAT_NAMED = Recording(
    "chat/openai/magentic--test-retry-chat-model-test-retry-chat-model-acomplete-litellm-openai.jsonl"
)
CHAT_CUT = Recording("chat/openai/mirascope--openai-gpt-5-mini-completions-async-stream.jsonl")
CHAT_AZURE = Recording("chat/azure-openai/fantasy--azure-gpt-5-mini-tool-streaming.jsonl")

# What other servers send, as raw bodies: each breaks some of those rules.
LLAMACPP_TEXT = Recording("wire/llamacpp/chat_text.sse")
LLAMACPP_EMOJI = Recording("wire/llamacpp/chat_emoji_bytes.sse")
LLAMACPP_TWO = Recording("wire/llamacpp/chat_n2.sse")
LLAMACPP_STOP_IN_CALL = Recording("wire/llamacpp/chat_tool_stop_word.sse")
LLAMACPP_NAMED = Recording("wire/llamacpp/chat_tool_named.sse")
LLAMACPP_FAULT = Recording("wire/llamacpp/err_midstream_fault.sse")
LLAMACPP_OVERFLOW = Recording("wire/llamacpp/err_context_overflow.sse")
VLLM_CALL = Recording("wire/vllm/chat_tool_auto.sse")
VLLM_LENGTH = Recording("wire/vllm/chat_length.sse")
MALFORMED = Recording("wire/llmock_faults/chat_text_usage_malformed.sse")


def stream_client(place: str) -> Client:
    """Return the source: what openai-python 3.57 does with chunks."""
    return Client("openai-python", place)


def chat_types(place: str) -> Schema:
    """Return the source: the published types of the Chat Completions API, as openai-python 3.57 has them."""
    return Schema(f"openai.types.chat.{place}")
