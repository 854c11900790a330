"""The output of child processes.

- `pipe`: a pipe that a task reads
"""
