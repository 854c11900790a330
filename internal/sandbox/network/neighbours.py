"""Lets a command reach the servers that other commands of its session have started.

Each command has its own network namespace. Where a running command listens, a socket listens in the
namespace of the new one as well, and its connections are copied to the server.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from internal.agent.domain.errors import ToolError
from internal.sandbox.network.namespace import NetworkNamespace, open_namespace
from internal.sandbox.network.streams import join

MAX_PORTS = 16
"""Forwarded ports of one other command."""

_LISTENING = re.compile(r"\s*\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A ")


def listening_ports(pid: int) -> set[int]:
    """Return the TCP ports on which somebody listens in the network namespace of a process."""
    ports: set[int] = set()
    for name in ("tcp", "tcp6"):
        try:
            table = Path(f"/proc/{pid}/net/{name}").read_text(encoding="ascii")
        except OSError:  # it has ended
            continue
        ports |= {int(found[1], 16) for found in map(_LISTENING.match, table.splitlines()) if found}
    return ports


@asynccontextmanager
async def reach_neighbours(
    own: NetworkNamespace, neighbours: Sequence[int], taken: set[int]
) -> AsyncGenerator[None]:
    """Forward the ports of other commands into the namespace of a command.

    Args:
        own: the namespace of the command.
        neighbours: a process of each other command; of those with the same port, the first is used.
        taken: ports that are not forwarded.
    """
    async with AsyncExitStack() as stack:
        for pid in neighbours:
            ports = sorted(await asyncio.to_thread(listening_ports, pid) - taken)[:MAX_PORTS]
            if ports:
                other = await stack.enter_async_context(open_namespace(pid))
                for port in ports:
                    await stack.enter_async_context(_forward(own, other, port))
                taken = {*taken, *ports}
        yield


@asynccontextmanager
async def _forward(
    own: NetworkNamespace, other: NetworkNamespace, port: int
) -> AsyncGenerator[None]:
    connections: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_connect(other, port, reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)

    server = await asyncio.start_server(accept, sock=await own.listen(port))
    try:
        yield
    finally:
        server.close()
        for task in connections:
            task.cancel()
        if connections:
            await asyncio.wait(connections)


async def _connect(
    other: NetworkNamespace, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        target = await asyncio.open_connection(sock=await other.connect(port))
    except (ToolError, OSError):  # the server has ended
        writer.transport.abort()
        return
    try:
        await join((reader, writer), target)
    finally:
        writer.transport.abort()
        target[1].transport.abort()
