"""Work on whole databases, table by table, apart from the named statements.

In reading order:

- `tables`: `TableConnection`, the tables of a database in one transaction
- `sqlite_tables`: the SQLite implementation
- `status`: sizes, rows and what is going on
- `json_lines`: the export
- `move`: copies a database into another one
- `sqlite_files`: vacuum and backup of a database file
"""
