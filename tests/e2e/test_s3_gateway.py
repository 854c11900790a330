"""A gateway whose files are in a bucket of a real S3 server."""

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.gateway_process import LARKSPUR, run_task, running_gateway
from tests.support.http_client import HttpClient
from tests.support.s3_server import S3Server, s3_server

PDF = {"content-type": "application/pdf"}
CONTENT = os.urandom(6_000_000)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[S3Server]:
    async with s3_server(tmp_path / "server") as server:
        yield server


@pytest.fixture
def s3_environ(server: S3Server, environ: dict[str, str]) -> dict[str, str]:
    return {**environ, **server.environ}


async def doctor(environ: dict[str, str]) -> tuple[str, str]:
    """Return the state and the sentence of the check of the store."""
    process = await asyncio.create_subprocess_exec(
        *(LARKSPUR, "doctor", "--json"), env=environ, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    checks = {check["name"]: check for check in json.loads(out)}
    return checks["attachments"]["state"], checks["attachments"]["sentence"]


async def artifacts(client: HttpClient, session: str) -> dict[str, bytes]:
    """Return the newest files of a session with their contents."""
    found = (await client.get(f"/api/artifacts?session_id={session}")).json()["artifacts"]
    contents = {}
    for each in found:
        reply = await client.get(f"/api/artifacts/{each['artifact_id']}/content")
        assert hashlib.sha256(reply.body).hexdigest() == each["sha256"]
        contents[each["name"]] = reply.body
    return contents


async def run(client: HttpClient, text: str, session: str) -> list[str]:
    """Run a task and return its events."""
    made = (await client.post("/api/tasks", {"task": text, "session_id": session})).json()
    events: list[str] = []
    async with client.stream(f"session_id={session}") as stream:
        while True:
            frames = await stream.until("workflow.result.final")
            events += [each.data for each in frames if made["run_id"] in each.data]
            if frames[-1].json()["run_id"] == made["run_id"]:
                return events


@pytest.mark.slow
async def test_files_are_in_the_bucket_and_an_outage_ends_no_run(
    home: Path, s3_environ: dict[str, str], server: S3Server
) -> None:
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    put = f"/api/attachments?name=a.pdf&sha256={sha256}"
    async with running_gateway(s3_environ, home) as (_, client, _):
        reply = await client.request("PUT", put, CONTENT, PDF)
        assert (reply.status, reply.json()["sha256"]) == (201, sha256)
        part = await client.get(f"/api/attachments/{sha256}", {"range": "bytes=5999990-"})
        assert (part.status, part.body) == (206, CONTENT[-10:])
        session = await run_task(client, "make a report about larks")
        assert (await artifacts(client, session))["report.md"].startswith(b"# A report about larks")
        assert len(server.objects()) == 2

        await server.stop()
        reply = await client.request("PUT", "/api/attachments?name=b.pdf", b"more", PDF)
        assert (reply.status, reply.error["code"]) == (503, "store_unavailable")
        assert reply.error["message"].endswith(
            f"cannot be written: 127.0.0.1:{server.port} cannot be reached"
        )
        reply = await client.get(f"/api/attachments/{sha256}")
        assert (reply.status, reply.error["code"]) == (503, "store_unavailable")
        events = await run(client, "make a report about owls", session)
        [completed] = [each for each in events if "Not shared: report.md" in each]
        assert f"127.0.0.1:{server.port} cannot be reached" in completed
        assert '"stop_reason":"final_answer"' in events[-1]

        await server.start()
        await run(client, "make a report about crows", session)
        assert (await artifacts(client, session))["report.md"].startswith(b"# A report about crows")
        reply = await client.request("PUT", "/api/attachments?name=b.pdf", b"more", PDF)
        assert reply.status == 201
    assert [path for path in (home / "attachments").rglob("*") if path.is_file()] == []


@pytest.mark.slow
async def test_doctor_says_what_is_wrong_with_the_bucket(
    s3_environ: dict[str, str], server: S3Server
) -> None:
    where = f"127.0.0.1:{server.port}"
    wrong = {
        "BUCKET": ("missing", f"{where} has no bucket missing"),
        "SECRET_KEY": ("wrong", f"{where} refuses the access key (AccessDenied)"),
    }
    for key, (value, sentence) in wrong.items():
        environ = {**s3_environ, f"LARKSPUR_ATTACHMENTS__S3__{key}": value}
        assert await doctor(environ) == ("fail", f"Attachments cannot be written: {sentence}.")
    assert await doctor(s3_environ) == (
        "ok",
        f"Files can be written to the bucket files at http://{where}, read and removed.",
    )
    assert server.objects() == []
    await server.stop()
    assert await doctor(s3_environ) == (
        "fail",
        f"Attachments cannot be written: {where} cannot be reached.",
    )
