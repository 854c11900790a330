"""The network of isolated commands.

- `proxy`: `EgressProxy`, which connects to permitted hosts only
- `entry`: opens a socket of this process in the network namespace of a command
- `namespace_listener`: the program that enters the namespace for that
"""
