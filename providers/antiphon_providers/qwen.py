"""Qwen on DashScope: `reasoning_content` beside null content, `id: ""` on later call fragments, an empty last one."""

from antiphon.profile import Profile

PROFILE = Profile(
    "qwen",
    developer_role=False,
    max_tokens_field="max_tokens",
    base_urls=("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"),
    model_prefixes=("qwen", "qwq-", "qvq-", "dashscope/"),
    evidence={
        "developer_role": "https://github.com/proma-ai/Proma/issues/1496",
        "max_tokens_field": "https://www.alibabacloud.com/help/en/model-studio/qwen-api-reference",
    },
)
