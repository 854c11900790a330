"""The PostgreSQL implementation of the database port.

In reading order:

- `database`: `PostgresDatabase`, which runs on two event loops of its own
- `writer`: group commit of serial transactions, and recovery from a lost connection
- `reader`: reads on snapshots
- `notifications`: the commits of other processes
- `schema`: checks of the server, creation and migration of the tables
- `connection`: connections and their settings
- `execution`: execution of a unit of work, in few round trips
- `errors`: translation of asyncpg's exceptions
- `loop_thread`: a thread with an event loop
"""
