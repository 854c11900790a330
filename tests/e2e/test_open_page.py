"""`larkspur open` and `larkspur serve --open`: the link reaches the browser and logs in once."""

import asyncio
import html
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.gateway_process import LARKSPUR, running_gateway


@pytest.fixture
def with_browser(environ: dict[str, str], tmp_path: Path) -> tuple[dict[str, str], Path]:
    """Return an environment with a browser that writes the given address into a pipe."""
    pipe, program = tmp_path / "address", tmp_path / "browser"
    os.mkfifo(pipe)
    program.write_text(f'#!/bin/sh\necho "$*" > {pipe}\n')
    program.chmod(0o700)
    return {**environ, "BROWSER": str(program)}, pipe


async def larkspur(environ: Mapping[str, str], *arguments: str) -> tuple[int, str, str]:
    """Run a command; return its exit code, its output and its messages."""
    process = await asyncio.create_subprocess_exec(
        LARKSPUR,
        *arguments,
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, messages = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode(), messages.decode()


async def opened(pipe: Path) -> str:
    """Wait until the browser was started and return the link in the file that it gets."""
    async with asyncio.timeout(30):
        arguments = (await asyncio.to_thread(pipe.read_text)).strip()
    return link_in(arguments)


def link_in(arguments: str) -> str:
    """Return the link in the file that a browser gets, which is for this user only."""
    assert arguments.startswith("file:///"), arguments
    file = Path(arguments.removeprefix("file://"))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    (link,) = re.findall(r"url=([^\"]+)", file.read_text())
    assert "#code=" in link
    return html.unescape(link)


async def test_the_page_is_opened_with_a_new_link(
    with_browser: tuple[dict[str, str], Path], environ: dict[str, str], home: Path
) -> None:
    desktop, pipe = with_browser
    code, output, messages = await larkspur(desktop, "open")
    assert (code, output) == (1, "")
    assert "No gateway is running. Start one with `larkspur serve`." in messages

    async with running_gateway(
        desktop, home, LARKSPUR, "serve", "--port", "0", "--open"
    ) as running:
        first = await opened(pipe)
        reading = asyncio.create_task(opened(pipe))
        code, output, messages = await larkspur(desktop, "open")
        second = await reading
        assert (code, output.strip()) == (0, second)
        assert "once, within 5 minutes" in messages
        log = await running.logged("page")
        assert "open` prints a link" in log  # no link in a log
        assert "#code=" not in log
        assert first != second
        for link in (first, second):
            body = {"code": link.partition("#code=")[2]}
            assert (await running.client.post("/api/login", body)).status == 200
            again = await running.client.post("/api/login", body)
            assert (again.status, again.error["code"]) == (403, "bad_code")

        # without a desktop there is only the link
        code, output, messages = await larkspur(environ, "open")
        assert (code, "#code=" in output) == (0, True)
        assert "one browser" in messages
        code, output, _ = await larkspur(desktop, "open", "--no-browser", "--json")
        assert (code, '"seconds": 300' in output) == (0, True)
