"""Databases and the SQL that runs on them.

In reading order:

- `database_url`: open a database by path or URL
- `queries`: the named statements in `queries/*.sql`
- `migrations`: the numbered schema changes in `migrations/<kind>/*.sql`
- `sqlite`: the SQLite implementation
"""
