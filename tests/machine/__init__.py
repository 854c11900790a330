"""The machine that tests run on.

Reading order:

- `programs`: the one list of system programs that tests need, and their installation
- `abilities`: what tests need of the machine, each found out by trying it
- `plugin`: the pytest plugin that leaves out tests whose needs are not met, and names them
"""
