"""Lets a command reach the servers that other commands of its session have started.

Each command has its own network namespace. Where a running command listens, a socket listens in the
namespace of the new one as well, and its connections are copied to the server.
"""

import asyncio
import re
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Literal

from internal.agent.domain.errors import ToolError
from internal.sandbox.network.namespace import NetworkNamespace, open_namespace
from internal.sandbox.network.streams import close, join, serve

MAX_PORTS = 16
"""Forwarded ports of one other command."""

_LISTENING = re.compile(r"\s*\d+: ([0-9A-F]+):([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A ")


def _as_listed(address: str) -> str:
    """Return an address as proc(5) writes it: words of four bytes in the order of the machine."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    words = memoryview(socket.inet_pton(family, address)).cast("I")
    return "".join(f"{word:08X}" for word in words)


_IPV4 = frozenset(map(_as_listed, ("0.0.0.0", "127.0.0.1", "::", "::ffff:127.0.0.1")))  # noqa: S104 - read, not bound
_IPV6 = frozenset(map(_as_listed, ("::", "::1")))
_LISTED = {"127.0.0.1": _IPV4, "::1": _IPV6, "localhost": _IPV4 | _IPV6}


def listening_ports(pid: int | Literal["self"], host: str = "localhost") -> set[int]:
    """Return the TCP ports on which somebody listens in the network namespace of a process.

    `host` is 127.0.0.1, ::1 or localhost, which is both. There are none of others.
    """
    listed = _LISTED.get(host, frozenset())
    ports: set[int] = set()
    for name in ("tcp", "tcp6"):
        try:
            table = Path(f"/proc/{pid}/net/{name}").read_text(encoding="ascii")
        except OSError:  # it has ended
            continue
        found = filter(None, map(_LISTENING.match, table.splitlines()))
        ports |= {int(each[2], 16) for each in found if each[1] in listed}
    return ports


@asynccontextmanager
async def reach_neighbours(
    own: NetworkNamespace, neighbours: Mapping[int, set[int]], taken: set[int]
) -> AsyncGenerator[None]:
    """Forward the ports of other commands into the namespace of a command.

    Args:
        own: the namespace of the command.
        neighbours: the ports of each other command, by the id of one of its processes; of servers
            with the same port, the first is used.
        taken: ports that are not forwarded.
    """
    async with AsyncExitStack() as stack:
        for pid, listening in neighbours.items():
            ports = sorted(listening - taken)[:MAX_PORTS]
            if ports:
                other = await stack.enter_async_context(open_namespace(pid))
                for port in ports:
                    listener = await own.listen(port)
                    await stack.enter_async_context(serve(listener, partial(_join, other, port)))
                taken = {*taken, *ports}
        yield


async def _join(
    other: NetworkNamespace, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        target = await asyncio.open_connection(sock=await other.connect(port))
    except (ToolError, OSError):  # the server has ended
        return
    try:
        await join((reader, writer), target)
    finally:
        await close(target[1])
