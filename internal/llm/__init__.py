"""Models: one file a provider, one layer of retries, one roster."""
