"""Debian's Chromium in the sandbox: a script that needs settings of /etc."""

from pathlib import Path

import pytest

from internal.agent.domain.ids import SessionId
from internal.agent.ports.sandbox import SandboxCommand
from internal.sandbox.bubblewrap import BubblewrapSandbox
from internal.sandbox.workspaces import SessionFolders

CHROMIUM = "/usr/bin/chromium"
PAGE = "data:text/html,<p>There are herons.</p>"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs("namespaces"),
    pytest.mark.needs("program:chromium"),
]


async def test_chromium_shows_a_page_without_further_flags(tmp_path: Path) -> None:
    homes = SessionFolders(tmp_path)
    session = SessionId("ses_1")
    output = bytearray()
    command = SandboxCommand(
        (CHROMIUM, "--headless", "--dump-dom", PAGE), homes.create(session), 120.0, session
    )
    done = await BubblewrapSandbox(homes).run(command, output.extend)
    assert done.exit_code == 0, output.decode()
    assert b"<p>There are herons.</p>" in output
