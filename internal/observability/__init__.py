"""Time and logs of the process.

- `clock`: the system clock
- `logs`: the log format, and the setup of logging
"""
