"""Execution of commands outside the process of Larkspur, and the folders of sessions.

In reading order:

- `workspaces`: the folders of sessions and subtasks, and the private homes of their commands
- `selection`: opens the sandbox that the settings name
- `native`: `NativeSandbox`, commands on this machine without isolation
- `launcher`: the process that starts commands, and ends all processes that they started
- `bubblewrap`: `BubblewrapSandbox`, commands in namespaces of their own
- `mounts`: the files that such a command sees
- `landlock`: `LandlockSandbox`, commands that restrict themselves
- `container`: `ContainerSandbox`, commands in containers of docker or podman
- `limits`: bounds of such a command
- `packages`: installs the Python packages of commands
- `probe`: tries to get out of a sandbox when Larkspur starts
- `environment`, `command_io`, `child_process`: shared by all sandboxes
- `process_privacy`: keeps child processes from reading this process's memory and environment
"""
