"""Maintenance of the database.

- `reports`: what is known of a database, and what was done with it
"""
