"""The services of a session in this process."""

import pytest

from internal.channels.cli.commands.context import CommandContext
from internal.channels.cli.commands.session_services import open_services
from larkspur.app import Application
from tests.unit.channels.cli.commands.conftest import logging_restored


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
