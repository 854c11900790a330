"""The network of isolated commands.

- `command_network`: `CommandNetwork`, all of it for one command
- `proxy`: `EgressProxy`, which connects to permitted hosts only
- `forwarder`: direct connections to permitted hosts, for programs without proxy support
- `neighbours`: reach the servers of other commands of the same session
- `namespace`: opens sockets of this process in the network namespace of a command
- `namespace_sockets`: the program that enters the namespace for that
- `streams`: copies the bytes of a connection
"""
