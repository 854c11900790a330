"""Execution of commands outside the process of Larkspur, and the folders of sessions.

In reading order:

- `workspaces`: the workspaces of sessions, and the private home folders of their commands
- `native`: `NativeSandbox`, commands on this machine without isolation
- `launcher`: the program between Larkspur and a command, which ends all processes it started
- `process_privacy`: keeps child processes from reading this process's memory and environment
"""
