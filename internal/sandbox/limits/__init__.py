"""Bounds of a command in a sandbox.

- `resource_limits`: memory, files, processes and time of a command
- `control_groups`: bounds of memory and processes for all processes of a command together
- `system_calls`: the filters of system calls
"""
