"""The program that opens sockets in the network namespace of a command.

It is run as a file (`python -I -S namespace_sockets.py PID FD`) because a process cannot leave the
namespaces that it has entered, and may import nothing but the standard library. Each packet on the
socket FD, `listen PORT` or `connect PORT`, is answered with `ok` and a socket, or with the reason
why there is none. It ends when the other end of FD is closed.
"""

import contextlib
import ctypes
import fcntl
import os
import socket
import sys

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000  # clone(2)
_NS_GET_USERNS = 0xB701  # ioctl_ns(2): the user namespace that owns a namespace
_CONNECT_TIMEOUT_SECONDS = 5.0


def enter(namespace: int, kind: int) -> None:
    """Move this process to a namespace.

    Raises:
        OSError: it may not be entered.
    """
    if ctypes.CDLL(None, use_errno=True).setns(namespace, kind):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def enter_network(pid: int) -> None:
    """Move this process to the network namespace of a process.

    Raises:
        OSError: the process has ended, or its namespace may not be entered.
    """
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    enter(fcntl.ioctl(network, _NS_GET_USERNS), _CLONE_NEWUSER)
    enter(network, _CLONE_NEWNET)


def open_socket(verb: str, port: int) -> socket.socket:
    """Return a socket that listens on 127.0.0.1, or that is connected to this machine.

    Raises:
        OSError: the port is taken, or nobody listens there.
    """
    if verb == "listen":
        return socket.create_server(("127.0.0.1", port))
    with contextlib.suppress(ConnectionError):
        return socket.create_connection(("127.0.0.1", port), _CONNECT_TIMEOUT_SECONDS)
    return socket.create_connection(("::1", port), _CONNECT_TIMEOUT_SECONDS)


def main(pid: int, link: socket.socket) -> None:
    """Answer the requests of a link."""
    enter_network(pid)
    while request := link.recv(64):
        verb, _, port = request.decode("ascii").partition(" ")
        try:
            with open_socket(verb, int(port)) as opened:
                socket.send_fds(link, [b"ok"], [opened.fileno()])
        except OSError as error:
            link.send(str(error).encode()[:512])


if __name__ == "__main__":
    main(int(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])))
