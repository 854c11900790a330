"""The machine that tests run on.

Reading order:

- `programs`: the one list of system programs that tests need, and their installation
- `abilities`: the abilities of the machine that tests need, each found out by a trial
- `plugin`: the pytest plugin that leaves out tests whose needs are not met, and names them
"""
