"""Several hosts that execute the runs of one database.

- `host`: a host, and which sessions are bound to it
- `shared_storage`: proves that a host reaches what all hosts share
- `workspace_keeper`: restores and archives the workspaces of sessions
- `absence`: tells people about runs whose host does not work
- `moves`: lets another host execute the tasks of a session
"""
