"""Rows that are removed because of their age.

- `expired_rows`: `RetentionStore`
"""
