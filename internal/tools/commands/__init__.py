"""Tools that run commands in the sandbox.

- `shell`: one command line, in the foreground or in the background
- `run_code`: a program in Python, JavaScript or bash
- `background`: the background commands of this process
- `background_tools`: read the output of background commands, and stop them
- `execution`, `command_end`, `configuration_files`: shared by all of them
"""
