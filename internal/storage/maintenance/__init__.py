"""Work on whole databases, table by table, apart from the named statements.

In reading order:

- `interface`: `DatabaseMaintenance`, the operations on each kind of database
- `selection`: choice of the kind by the URL
- `tables`: `TableConnection`, the tables of a database
- `status`: rows, runs and processes
- `json_lines`: the export
- `move`: copies a database into another one
- `sqlite_maintenance`, `sqlite_tables`, `sqlite_files`: of a SQLite file
- `postgres_maintenance`, `postgres_tables`: of a PostgreSQL database
"""
