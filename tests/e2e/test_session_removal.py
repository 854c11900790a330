"""Deleting a session while its gateway is killed: all of it goes, or nothing."""

import asyncio
import base64
import hashlib
from pathlib import Path

import pytest

from internal.config.home import prepare
from tests.support.gateway_process import ProcessEnded, run_task, serve
from tests.support.http_client import HttpClient

pytestmark = pytest.mark.slow

CRASHES = 8
"""More than the commits of a start and of a deletion."""


async def delete_until_the_crash(home: Path, session: str, number: int) -> bool:
    """Delete a session in a process that dies after a commit. Return whether it was confirmed."""
    confirmed = False
    try:
        async with serve(home, plan=f"after:{number}") as client:
            reply = await client.request("DELETE", f"/api/sessions/{session}")
            assert reply.status == 204
            confirmed = True
    except* (ProcessEnded, OSError, asyncio.IncompleteReadError):
        pass
    return confirmed


async def is_found(client: HttpClient, path: str) -> bool:
    reply = await client.get(path)
    assert reply.status in {200, 404}
    return reply.status == 200


async def test_a_crash_during_a_deletion_leaves_no_files(tmp_path: Path) -> None:
    home = prepare(tmp_path / "home")
    outcomes = set()
    for number in range(1, CRASHES + 1):
        content = f"file of round {number}".encode()
        data = base64.b64encode(content).decode()
        file = {"name": "a.txt", "media_type": "text/plain", "data": data}
        async with serve(home) as client:
            session = await run_task(client, "what is 1+1?", attachments=[file])
        workspace = home / "workspaces" / session
        assert workspace.is_dir()
        confirmed = await delete_until_the_crash(home, session, number)
        async with serve(home) as client:
            is_left = await is_found(client, f"/api/sessions/{session}")
            sha256 = hashlib.sha256(content).hexdigest()
            assert await is_found(client, f"/api/attachments/{sha256}") is is_left
            assert workspace.exists() is is_left
        assert not (confirmed and is_left)
        outcomes.add((confirmed, is_left))
    assert outcomes >= {(False, True), (False, False), (True, False)}
