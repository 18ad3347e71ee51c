"""GitHub Copilot: a first chunk without choices, finish_reason, usage and null content on the last one."""

from antiphon.profile import Profile

PROFILE = Profile(
    "copilot",
    base_urls=("api.githubcopilot.com", "*.githubcopilot.com"),
    model_prefixes=("github_copilot/", "copilot/"),
)
