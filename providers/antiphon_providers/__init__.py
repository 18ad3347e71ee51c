"""All that knows a provider: profiles, quirks and backends.

Each module beside this one declares one `PROFILE`, a value of facts that names where each fact was seen; `quirks` holds
the few things that data cannot say. The core finds the profiles through the entry-point group `antiphon.providers`.
"""
