"""A folder in which no task can work is refused before anything is stored or sent to a model."""

import asyncio
import json
from asyncio.subprocess import PIPE
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from internal.config import home as home_folder
from tests.support.cli_environment import open_command_line
from tests.support.gateway_process import LARKSPUR
from tests.support.scripted_model import Reply
from tests.support.terminal import start_terminal


def submit(home: Path, folder: str) -> tuple[int, str]:
    """Submit a task in a folder over HTTP; return the status and the message for the person."""
    address = home_folder.find_gateway(home)
    assert address is not None
    where = urlsplit(address.url)
    connection = HTTPConnection(where.hostname or "", where.port, timeout=30)
    token = (home / "token").read_text().strip()
    body = json.dumps({"task": "hello", "options": {"workspace": folder}})
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    connection.request("POST", "/api/tasks", body, headers)
    response = connection.getresponse()
    answer: dict[str, Any] = json.loads(response.read())
    connection.close()
    return response.status, answer["error"]["message"] if "error" in answer else ""


async def test_a_wrong_folder_is_refused_over_http_and_no_task_is_stored(
    home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    rows = (
        (str(tmp_path / "none"), "none is not a folder."),
        (str(tmp_path / "file"), "file is not a folder."),
        (str(tmp_path / "link"), f"leads to {tmp_path / 'folder'}"),
        (str(home), "belongs to Larkspur itself."),
        ("/\0", "must be an absolute path"),
        ("~/a", "must be an absolute path such as /home/me/project, not ~/a."),
    )
    async with open_command_line("gateway", home, environ, [Reply("Done.")]) as cli:
        for folder, sentence in rows:
            status, said = submit(home, folder)
            assert (status, sentence in said) == (400, True), said
            assert "\0" not in said
        assert submit(home, str(tmp_path / "folder"))[0] == 201
        await cli.only_task()


@pytest.mark.slow
async def test_a_folder_that_is_gone_is_named_in_the_terminal(
    home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    async with open_command_line("process", home, environ, [Reply("I am here.")]) as cli:
        terminal = start_terminal([LARKSPUR], cli.environ, gone, (300, 30))  # no path is wrapped
        async with terminal as tty:
            await tty.wait_for("/help")
            gone.rmdir()
            tty.type("where are you?\r")
            await tty.wait_for(f"The workspace {gone} is not a folder.")
            # the message is still there to be sent
            await tty.wait_until(lambda: tty.screen.text.count("where are you?") == 2)
            assert not cli.model.requests
            gone.mkdir()
            tty.type("\r")
            await tty.wait_for("I am here.")
            tty.type("\x04")
            assert await tty.wait_exit() == 0


@pytest.mark.slow
async def test_a_task_in_a_working_folder_that_is_gone_is_refused(
    home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    entering = f'mkdir "{gone}"; cd "{gone}"; rmdir "{gone}"; exec "{LARKSPUR}" -p "where are you?"'
    async with open_command_line("gateway", home, environ, []) as cli:
        process = await asyncio.create_subprocess_exec(
            *("sh", "-c", entering), env=cli.environ, stderr=PIPE
        )
        _, said = await process.communicate()
    assert process.returncode == 2
    assert said == b"The working folder cannot be used: No such file or directory.\n"
    assert not cli.model.requests
