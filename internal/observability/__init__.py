"""Time, processes and logs.

- `clock`: the system clock
- `processes`: the processes of the machine, and whether they live
- `logs`: the log format, and the setup of logging
"""
