"""The program that opens a listening socket in the network namespace of a command.

It is run as a file (`python -I -S namespace_listener.py PID PORT FD`) because a process cannot
leave the namespaces that it has entered, and may import nothing but the standard library. It sends
the socket over the socket FD and ends; a failure is written to stderr.
"""

import ctypes
import fcntl
import os
import socket
import sys

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000  # clone(2)
_NS_GET_USERNS = 0xB701  # ioctl_ns(2): the user namespace that owns a namespace


def enter(namespace: int, kind: int) -> None:
    """Move this process to a namespace.

    Raises:
        OSError: it may not be entered.
    """
    if ctypes.CDLL(None, use_errno=True).setns(namespace, kind):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def main(pid: int, port: int, link: socket.socket) -> None:
    """Listen on 127.0.0.1 in the network namespace of a process."""
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    enter(fcntl.ioctl(network, _NS_GET_USERNS), _CLONE_NEWUSER)
    enter(network, _CLONE_NEWNET)
    with socket.create_server(("127.0.0.1", port)) as listener:
        socket.send_fds(link, [b"ready"], [listener.fileno()])


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), socket.socket(fileno=int(sys.argv[3])))
