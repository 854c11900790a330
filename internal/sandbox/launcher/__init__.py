"""Starts commands outside of a namespace, and ends all processes that they started.

In reading order:

- `process`: `Launcher`, the process that starts commands, and how it is given one
- `command`: `LaunchedCommand`, one command from its start to its end
- `program`: the program of that process
"""
