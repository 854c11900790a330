"""The services of a session in this process."""

import asyncio
import sys

import pytest

from internal.channels.cli.commands.context import CommandContext
from internal.channels.cli.commands.session_services import open_services
from internal.channels.cli.records import TaskRequest
from larkspur.application import Application
from tests import ROOT
from tests.support.command_runner import logging_restored


async def test_the_doctor_of_a_session_leaves_its_database_locked(
    application: Application,
) -> None:
    """Another process that closes the file last would otherwise take its log away."""
    context = CommandContext(lambda: application, "1.2.3")
    with logging_restored():
        async with open_services(None, None, context, lambda _: None) as services:
            assert any("is open in this session" in line for line in services.doctor())
            path = application.settings(None).database
            writer = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.support.event_writer", str(path), "a", "1", "1"),
                cwd=ROOT,
                stdout=asyncio.subprocess.DEVNULL,
            )
            assert await writer.wait() == 0
            assert (await services.client.submit(TaskRequest("what is 6*7?", {}))).task_id


async def test_services_of_this_process(application: Application) -> None:
    notices: list[str] = []
    context = CommandContext(lambda: application, "1.2.3")
    with logging_restored():
        async with open_services(None, None, context, notices.append) as services:
            assert (await services.client.defaults()).offline
            assert "shell" in {tool.name for tool in services.tools()}
            with pytest.raises(ValueError, match="shell"):
                services.check_rule("shell(", True)
    assert notices == []
