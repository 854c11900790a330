"""Maintenance of the database.

- `reports`: facts about a database, and the results of operations on it
"""
