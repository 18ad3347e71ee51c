"""Azure OpenAI and Foundry: a first chunk without choices, content filter results, the shapes of what is deployed."""

from antiphon.profile import Profile

from .sources import LITELLM

PROFILE = Profile(
    "azure",
    family="openai",
    opens_seals=False,
    passthrough=frozenset({"prompt_cache_key", "store", "user"}),
    base_urls=("*.openai.azure.com", "*.cognitiveservices.azure.com", "*.services.ai.azure.com"),
    model_prefixes=("azure/", "azure_ai/"),
    evidence={
        "family": "chat/azure-openai/vercel-ai--openai-azure-model-router.jsonl",
        "opens_seals": "https://github.com/openai/openai-agents-python/issues/2063",
        "passthrough": f"{LITELLM}/azure/chat/gpt_transformation.py",
    },
)
