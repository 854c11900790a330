"""Databases and the SQL that runs on them.

In reading order:

- `database_url`: open a database by path or URL
- `queries`: the named statements in `queries/*.sql`
- `migrations`: the numbered schema changes in `migrations/<kind>/*.sql`
- `moves`: databases that were moved are not opened
- `queued_database`, `pending_work`: units of work on their way to the threads of a database
- `sqlite`: the SQLite implementation
- `postgres`: the PostgreSQL implementation
- `maintenance`: status, export, backup and moves of whole databases
"""
