"""The program that opens sockets in the network namespace of a command.

It is run as a file (`python -I -S namespace_sockets.py PID FD`) because a process cannot leave the
namespaces that it has entered, and may import nothing but the standard library. Each packet on the
socket FD, `NUMBER listen PORT ADDRESS` or `NUMBER connect PORT`, is answered with its number and a
socket, or with the reason why there is none. It ends when the other end of FD is closed.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import socket
import struct
import sys

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000  # clone(2)
_NS_GET_USERNS = 0xB701  # ioctl_ns(2): the user namespace that owns a namespace
_CONNECT_TIMEOUT_SECONDS = 5.0

# the numbers of rtnetlink(7)
_NEW_ADDRESS = 20
_REQUEST, _ACKNOWLEDGE = 1, 4
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_NO_DUPLICATE_DETECTION = 2
_HEADER = struct.Struct("=IHHII")


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


def add_address(address: str, family: int) -> None:
    """Make an address one of `lo`, so that connections to it end in this namespace.

    Raises:
        OSError: this is not possible, for example since the kernel has no IPv6.
    """
    packed = socket.inet_pton(family, address)
    interface = socket.if_nametoindex("lo")
    body = struct.pack("=BBBBI", family, 8 * len(packed), _NO_DUPLICATE_DETECTION, 0, interface)
    for kind in (_IFA_LOCAL, _IFA_ADDRESS):
        body += struct.pack("=HH", 4 + len(packed), kind) + packed
    flags = _REQUEST | _ACKNOWLEDGE
    message = _HEADER.pack(_HEADER.size + len(body), _NEW_ADDRESS, flags, 1, 0) + body
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.send(message)
        answer = kernel.recv(4_096)
    number = -struct.unpack_from("=i", answer, _HEADER.size)[0]
    if number not in {0, errno.EEXIST}:
        raise OSError(number, os.strerror(number))


def listen(address: str, port: int) -> socket.socket:
    """Return a socket that listens on an address, which is added if `lo` does not have it.

    Raises:
        OSError: the port is taken, or the address cannot be added.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    if not address.startswith("127.") and address != "::1":
        add_address(address, family)
    return socket.create_server((address, port), family=family)


def open_socket(verb: str, port: int, address: str = "127.0.0.1") -> socket.socket:
    """Return a socket that listens, or that is connected to this machine.

    Raises:
        OSError: the port is taken, or nobody listens there.
    """
    if verb == "listen":
        return listen(address, port)
    with contextlib.suppress(ConnectionError):
        return socket.create_connection(("127.0.0.1", port), _CONNECT_TIMEOUT_SECONDS)
    return socket.create_connection(("::1", port), _CONNECT_TIMEOUT_SECONDS)


def main(pid: int, link: socket.socket) -> None:
    """Answer the requests of a link."""
    enter_network(pid)
    while request := link.recv(128):
        number, verb, port, *address = request.decode("ascii").split()
        try:
            with open_socket(verb, int(port), *address) as opened:
                socket.send_fds(link, [number.encode()], [opened.fileno()])
        except OSError as error:
            link.send(f"{number} {error}".encode()[:512])


if __name__ == "__main__":
    main(int(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])))
