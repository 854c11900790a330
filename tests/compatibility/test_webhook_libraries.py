"""Libraries that verify the signatures of webhooks, from the registries of packages."""

import asyncio
import json
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest
from pydantic import SecretStr

from internal.hooks.signature import make_secret
from internal.hooks.signed_post import SignedPoster
from internal.observability.clock import SystemClock
from tests.compatibility.programs import install
from tests.support.hook_server import HookServer

PROGRAMS = Path(__file__).parent / "webhook_libraries"
PACKAGES = {
    "npm.mjs": ("standardwebhooks@1.1.1", "svix@2.5.0"),
    "pypi.py": ("svix==2.9.1",),
}

pytestmark = [pytest.mark.compatibility, pytest.mark.slow]


@pytest.mark.parametrize("program", PACKAGES)
async def test_libraries_verify_what_is_sent(tmp_path: Path, program: str) -> None:
    command = await install(PROGRAMS / program, PACKAGES[program], tmp_path)
    poster = SignedPoster(SystemClock())
    given = []
    for secret, format_ in [
        (make_secret(), "default"),
        ("0123456789abcdef" * 4, "default"),
        ("0123456789abcdef" * 4, "raw"),
        ("s3cret!", "raw"),
    ]:
        async with HookServer() as server:
            await poster.post(
                server.url,
                b'{"event":"workflow.result.final"}',
                message_id="evt-1",
                secret=SecretStr(secret),
                timeout_seconds=10,
            )
        [request] = server.requests
        fields = {"secret": secret, "format": format_}
        given.append({**fields, "headers": request.headers, "body": request.body.decode()})
    await poster.close()
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=STDOUT)
    output, _ = await process.communicate(json.dumps(given).encode())
    assert (process.returncode, output) == (0, b"")
