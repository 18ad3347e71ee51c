"""All that knows a provider: profiles, quirks and backends."""
