"""Where commands can be isolated, they are isolated in every mode and under every approval."""

from pathlib import Path
from typing import Any

import pytest

from internal.agent.domain.permissions.modes import Mode
from tests.support.agent_app import open_agent
from tests.support.anthropic_server import Call, Reply, seen_in
from tests.support.sandboxes import sandbox_params

ENVIRON = {"LARKSPUR_AGENT__GATES": "off"}

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("provider", sandbox_params("bubblewrap", "landlock"))
@pytest.mark.parametrize(
    ("mode", "asks", "options"),
    [
        (Mode.DENY, False, {"allow": ("shell",)}),
        (Mode.ASK, False, {"allow": ("shell",)}),
        (Mode.ASK, True, {}),
        (Mode.EDIT, True, {}),
        (Mode.RUN, False, {}),
        (Mode.ALL, False, {}),
    ],
)
async def test_a_command_sees_nothing_outside(
    home: Path, tmp_path: Path, provider: str, mode: Mode, *, asks: bool, options: dict[str, Any]
) -> None:
    (workspace := tmp_path / "project").mkdir()
    (tmp_path / "outside.txt").write_text("of-another-project")
    command = f"touch ran; cat {tmp_path}/outside.txt; touch {tmp_path}/made"
    script = [Reply(calls=[Call("shell", {"command": command})]), Reply("done")]
    environ = {**ENVIRON, "LARKSPUR_SANDBOX__PROVIDER": provider}
    async with open_agent(home, script, environ) as here:
        made = await here.submit("go", workspace=str(workspace), permission_mode=mode, **options)
        if asks:
            await here.answer((await here.asked(made))["question_id"])
        await here.end_of(made)
        result = seen_in(here.model.requests[-1]).last_result
    assert (workspace / "ran").exists(), result
    assert "of-another-project" not in result
    assert not (tmp_path / "made").exists()
