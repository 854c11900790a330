"""The SQLite implementation of the database port.

In reading order:

- `database`: `SqliteDatabase`, its reader threads
- `writer`: the writer thread, group commit, and the execution of a unit of work
- `work_queue`: the queue of the writer thread
- `commit_watch`: the commits of other processes
- `schema`: creation and migration of the file
- `image_references`: the function of migration 7
- `file_check`: checks before a file is opened for writing
- `connection`: connections and their settings
- `errors`: translation of SQLite's exceptions
- `mounts`: detection of network file systems
"""
