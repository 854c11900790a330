"""Removal of what is older than the settings allow.

- `pruner`: `Pruner`, `RetentionPolicy`
"""
