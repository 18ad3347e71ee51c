"""Public sources that several profiles name as evidence: what other clients of these providers send, and where."""

# How LiteLLM 1.110 makes each provider's request.
LITELLM = "https://github.com/BerriAI/litellm/blob/main/litellm/llms"
# How any-llm 1.40 does.
ANY_LLM = "https://github.com/mozilla-ai/any-llm/blob/main/src/any_llm"
# Its `detectCompat` is a table of what servers refuse.
PI = "https://github.com/badlogic/pi-mono/blob/main/packages/ai/src/api/openai-completions.ts"
