"""Snowflake Cortex: no finish_reason at all, empty ids, empty and null fields on every chunk."""

from antiphon.profile import Profile

from .sources import LITELLM

PROFILE = Profile(
    "snowflake",
    finish_reason_optional=True,
    parallel_tool_calls=False,
    base_urls=("*.snowflakecomputing.com/api/v2/cortex",),
    model_prefixes=("snowflake/",),
    evidence={
        "finish_reason_optional": "chat/snowflake/pydantic-ai--test-snowflake-test-snowflake-model-streaming.jsonl",
        "parallel_tool_calls": f"{LITELLM}/snowflake/chat/transformation.py",
    },
)
