"""An upload continues after the gateway is killed."""

import asyncio
import hashlib
import os
import signal
from pathlib import Path

import pytest

from internal.config.home import prepare
from tests.support.gateway_process import serve

CONTENT = os.urandom(3_000_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
PATH = f"/api/attachments?name=a.bin&sha256={SHA256}"
HALF = 1_500_000


@pytest.mark.slow
async def test_an_upload_is_continued_after_the_gateway_was_killed(home: Path) -> None:
    prepare(home)
    async with serve(home, signal.SIGKILL) as client:
        _, writer = await client.connect()
        announced = {"content-length": str(len(CONTENT))}
        writer.write(client.head("PUT", PATH, announced) + CONTENT[:HALF])
        received = 0
        async with asyncio.timeout(20):
            while received < HALF:
                status = await client.get(f"/api/attachments/{SHA256}/upload")
                received = status.json()["received"]
    writer.close()
    async with serve(home) as client:
        status = await client.get(f"/api/attachments/{SHA256}/upload")
        assert status.json() == {"sha256": SHA256, "received": HALF, "complete": False}
        rest = CONTENT[HALF:]
        kind = {"content-type": "application/pdf"}
        reply = await client.request("PUT", f"{PATH}&offset={HALF}", rest, kind)
        assert reply.status == 201, reply
        assert (await client.get(f"/api/attachments/{SHA256}")).body == CONTENT
    left = [path for path in (home / "uploads").rglob("*") if path.is_file()]
    assert left == []
