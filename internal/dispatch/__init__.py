"""Dispatch: which process executes which run, and when.

In reading order:

- `local`: `LocalDispatcher`, starts the queued runs of a database
- `terminal`: `TerminalDispatcher`, executes the runs of one terminal
- `leases`: lease renewal and stop requests of other processes
- `lock`: the lock that allows one gateway per database
"""
