"""Databricks: usage on every chunk, without counts until the last; a call without parameters gets no arguments at all."""

from antiphon.profile import Profile

from .sources import LITELLM

PROFILE = Profile(
    "databricks",
    effort_levels=("low", "medium", "high"),
    max_tokens_field="max_tokens",
    parallel_tool_calls=False,
    base_urls=("*.cloud.databricks.com", "*.gcp.databricks.com", "*.azuredatabricks.net"),
    model_prefixes=("databricks-", "databricks/"),
    evidence={
        "effort_levels": "https://learn.microsoft.com/azure/databricks/machine-learning/model-serving/query-reason-models",
        "max_tokens_field": "https://docs.databricks.com/aws/machine-learning/foundation-model-apis/api-reference",
        "parallel_tool_calls": f"{LITELLM}/databricks/chat/transformation.py",
    },
)
