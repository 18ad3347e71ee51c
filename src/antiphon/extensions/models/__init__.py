"""Models through LiteLLM and any-llm, under the module names of openai-agents."""
