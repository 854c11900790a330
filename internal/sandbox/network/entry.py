"""A socket of this process on which a command in a network namespace of its own can connect."""

import asyncio
import os
import socket
import sys
from pathlib import Path

from internal.agent.domain.errors import ToolError

_PROGRAM = str(Path(__file__).with_name("namespace_listener.py"))
_TIMEOUT_SECONDS = 10.0
_MAX_ERROR_BYTES = 2_000


async def listen_in_namespace(pid: int, port: int) -> socket.socket:
    """Return a socket that listens on 127.0.0.1 in the network namespace of a process.

    Raises:
        ToolError: the namespace cannot be entered.
    """
    link, sent = socket.socketpair()
    with link, sent:
        link.setblocking(False)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", _PROGRAM, str(pid), str(port), str(sent.fileno())),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env={"PATH": os.defpath},
            pass_fds=(sent.fileno(),),
        )
        sent.close()
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                _, error = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        try:
            _, descriptors, _, _ = socket.recv_fds(link, 16, 1)
        except BlockingIOError:
            descriptors = []
        if not descriptors:
            said = error[-_MAX_ERROR_BYTES:].decode(errors="replace").strip().rpartition("\n")[2]
            raise ToolError(f"the command cannot be given a network: {said or 'no reason given'}")
        listener = socket.socket(fileno=descriptors[0])
        listener.setblocking(False)
        return listener
