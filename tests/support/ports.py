"""Ports of servers that stop and start again during a test."""

import secrets
import socket

_FIRST, _COUNT = 20_000, 12_000
"""Below the ports that Linux gives away by itself, from 32768 on: no other server or client of a
test gets the port while its server is stopped."""


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nothing listens."""
    while True:
        port = _FIRST + secrets.randbelow(_COUNT)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
