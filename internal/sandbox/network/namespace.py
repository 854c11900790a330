"""Sockets of this process in the network namespace of a command."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from internal.agent.domain.errors import ToolError
from internal.output_pipe.pipe import wait_until_readable
from internal.sandbox.child_process import ChildProcess

_PROGRAM = str(Path(__file__).with_name("namespace_sockets.py"))
_TIMEOUT_SECONDS = 10.0
_MAX_REASON_BYTES = 512


class NetworkNamespace:
    """The network namespace of a process."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._asking = asyncio.Lock()
        self._asked = 0

    async def listen(self, port: int, address: str = "127.0.0.1") -> socket.socket:
        """Return a socket that listens on an address, which is made one of the namespace.

        Raises:
            ToolError: the port is taken, or the namespace cannot be entered or have the address.
        """
        return await self._open(f"listen {port} {address}")

    async def connect(self, port: int) -> socket.socket:
        """Return a socket that is connected to a port of 127.0.0.1 or ::1.

        Raises:
            ToolError: nobody listens there, or the namespace cannot be entered.
        """
        return await self._open(f"connect {port}")

    async def _open(self, request: str) -> socket.socket:
        async with self._asking:
            self._asked += 1
            try:
                async with asyncio.timeout(_TIMEOUT_SECONDS):
                    self._link.send(f"{self._asked} {request}".encode("ascii"))
                    said, descriptors = await self._receive(self._asked)
            except (OSError, TimeoutError) as error:  # the program has ended
                raise ToolError("the network of the command cannot be entered") from error
        if not descriptors:
            reason = said or "it cannot be entered"
            raise ToolError(f"the network of the command: {reason}")
        opened = socket.socket(fileno=descriptors[0])
        opened.setblocking(False)
        return opened

    async def _receive(self, number: int) -> tuple[str, list[int]]:
        """Return the answer to a request. Connections without a waiting request are dropped."""
        while True:
            await wait_until_readable(self._link)
            packet, descriptors, _, _ = socket.recv_fds(self._link, _MAX_REASON_BYTES, 1)
            found, _, said = packet.decode(errors="replace").partition(" ")
            if found in {str(number), ""}:
                return said, descriptors
            for each in descriptors:
                os.close(each)


@asynccontextmanager
async def open_namespace(pid: int) -> AsyncGenerator[NetworkNamespace]:
    """Open the network namespace of a process that this user has started."""
    link, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with link, other:
        link.setblocking(False)
        argv = (sys.executable, "-I", "-S", _PROGRAM, str(pid), str(other.fileno()))
        process = ChildProcess(
            argv,
            streams=(asyncio.subprocess.DEVNULL,) * 3,
            environment={"PATH": os.defpath},
            descriptors=(other.fileno(),),
        )
        other.close()
        try:
            yield NetworkNamespace(link)
        finally:
            process.kill()
            await process.wait()
