"""Requests generated from the OpenAPI document, valid and invalid, against the running server.

Every response must have a status, a media type and a body that the document describes; invalid
input must be refused and valid input accepted; no request may cause a server error.
"""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.support.anthropic_server import Reply
from tests.support.web_app import TOKEN
from tests.support.working_web_app import open_working_web_app

CONFIG = Path(__file__).with_name("schemathesis.toml")
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")


@pytest.mark.parametrize(
    "examples",
    [
        pytest.param(3, marks=[pytest.mark.slow, pytest.mark.timeout(600)]),
        pytest.param(200, marks=[pytest.mark.chaos, pytest.mark.timeout(1_800)]),
    ],
)
async def test_the_server_behaves_as_its_openapi_document_says(
    home: Path, tmp_path: Path, examples: int
) -> None:
    async with open_working_web_app(
        home, [Reply(text="Done.")] * 5_000, stream_max_seconds=0.1
    ) as app:
        url = f"http://127.0.0.1:{app.client.port}"
        process = await asyncio.create_subprocess_exec(
            SCHEMATHESIS,
            *("--config-file", CONFIG, "run", f"{url}/api/openapi.json"),
            *("--header", f"Authorization: Bearer {TOKEN}"),
            *("--max-examples", str(examples), "--seed", "1"),
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
    assert process.returncode == 0, output.decode()
