"""Removal of data older than the settings allow.

- `pruner`: `Pruner`, `RetentionPolicy`
"""
