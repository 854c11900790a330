"""Execution of commands outside the process of Larkspur.

In reading order:

- `native`: `NativeSandbox`, commands on this machine without isolation
- `launcher`: the program between Larkspur and a command, which ends all processes it started
- `process_privacy`: keeps child processes from reading this process's memory and environment
"""
