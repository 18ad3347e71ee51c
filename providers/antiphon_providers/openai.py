"""OpenAI: the baseline, in both directions."""

from antiphon.profile import Profile

PROFILE = Profile(
    "openai",
    call_id_pattern=r".{1,40}",
    audio=True,
    opens_seals=False,
    passthrough=frozenset(
        {
            "metadata",
            "prompt_cache_key",
            "prompt_cache_retention",
            "safety_identifier",
            "service_tier",
            "store",
            "user",
            "verbosity",
        }
    ),
    base_urls=("api.openai.com", "*.api.openai.com"),
    model_prefixes=("gpt-3.5", "gpt-4", "gpt-5", "chatgpt-", "o1", "o3", "o4"),
    evidence={
        "call_id_pattern": "https://github.com/agno-agi/agno/issues/5382",
        "audio": "https://github.com/openai/openai-python/blob/main/src/openai/types/chat/chat_completion_content_part_input_audio_param.py",
        "opens_seals": "https://github.com/openai/codex/issues/8119",
        "passthrough": "https://github.com/openai/openai-python/blob/main/src/openai/types/chat/completion_create_params.py",
    },
)
