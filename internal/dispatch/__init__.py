"""Dispatch: which process executes which run, and when.

In reading order:

- `dispatcher`: `RunDispatcher`, starts the queued runs of a database
- `terminal`: `TerminalDispatcher`, executes the runs of one terminal
- `leases`: lease renewal and stop requests of other processes
- `registry`: the processes that serve a database
- `lock`: the lock file that allows one gateway per SQLite database
"""
