"""`sandbox.read_only`: additional files and programs that isolated commands can read."""

from pathlib import Path

import pytest

from internal.settings.types import ConfigError
from tests.support.agent_app import open_agent
from tests.support.anthropic_server import Call, Reply, seen_in
from tests.support.sandboxes import sandbox_params

ISOLATED = {"LARKSPUR_AGENT__GATES": "off"}


@pytest.mark.parametrize("provider", sandbox_params("bubblewrap", "landlock", "native"))
@pytest.mark.first_rows(1)
async def test_commands_read_the_paths_of_the_settings_and_find_their_programs(
    tmp_path: Path, provider: str
) -> None:
    tools, workspace, home = (tmp_path / name for name in ("tools", "workspace", "home"))
    for folder in (tools / "bin", workspace, home):
        folder.mkdir(parents=True)
    program = tools / "bin" / "sing"
    program.write_text("#!/bin/sh\necho tirra-lirra\n")
    program.chmod(0o755)
    call = Call("shell", {"command": f"sing; touch {tools}/made"})
    environ = {
        **ISOLATED,
        "LARKSPUR_SANDBOX__PROVIDER": provider,
        "LARKSPUR_SANDBOX__READ_ONLY": f'["{tools}"]',
    }
    async with open_agent(home, [Reply(calls=[call]), Reply("done")], environ) as here:
        made = await here.submit("go", workspace=str(workspace), permission_mode="all")
        await here.end_of(made)
        first, last = here.model.requests
    assert "tirra-lirra" in seen_in(last).last_result
    is_isolated = provider != "native"
    assert (f"machine, {tools}," in str(first["system"])) == is_isolated
    assert (tools / "made").exists() != is_isolated


@pytest.mark.parametrize("path", ["/", "/etc", "/proc", "relative"])
async def test_a_path_that_cannot_be_given_to_commands_is_a_wrong_setting(
    tmp_path: Path, path: str
) -> None:
    environ = {"LARKSPUR_SANDBOX__READ_ONLY": f'["{path}"]'}
    with pytest.raises(ConfigError, match=r"sandbox.read_only"):
        async with open_agent(tmp_path, [], environ):
            pass
