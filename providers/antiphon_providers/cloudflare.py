"""Cloudflare Workers AI: no role in any chunk, usage on the finish chunk."""

from antiphon.profile import Profile

from .sources import PI

PROFILE = Profile(
    "cloudflare",
    developer_role=False,
    base_urls=("api.cloudflare.com/client/v4/accounts/*/ai/v1", "gateway.ai.cloudflare.com"),
    model_prefixes=("@cf/", "cloudflare/"),
    evidence={"developer_role": PI},
)
