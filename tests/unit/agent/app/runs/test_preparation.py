"""Preparation: the system prompt, and attachments in the first message."""

import base64
from datetime import UTC, datetime
from pathlib import Path

from internal.agent.app.runs.creation import Submission
from internal.agent.app.runs.preparation import command_rules, system_prompt
from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import Profile
from internal.agent.ports.sandbox import SandboxCapabilities
from tests.support.agent_app import core
from tests.support.anthropic_server import Reply


def test_the_system_prompt_describes_the_profile_and_the_gates() -> None:
    profile = Profile(role="a gardener", goal="grow", tone="dry", prompt="Mind the roses.")
    now = datetime.now(UTC)
    prompt = system_prompt(profile, "off", "/srv/garden", now)
    for words in ("a gardener", "grow", "dry", "Mind the roses.", "/srv/garden"):
        assert words in prompt
    assert "call `plan`" not in prompt
    assert "call `plan`" in system_prompt(profile, "strict", "/srv", now)


def test_the_rules_name_the_languages_when_one_is_missing() -> None:
    complete = SandboxCapabilities(isolated=True)
    lacking = SandboxCapabilities(runtimes=("python", "bash"))
    assert "run_code" not in command_rules(Policy(), complete)
    assert command_rules(Policy(), lacking) == "\n- `run_code` has python and bash here, not node."


async def test_attachments_are_part_of_the_first_message(home: Path) -> None:
    png = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    async with core(home, [Reply(text="seen")]) as here:
        put = here.services.attachments.put
        files = (
            await put("dot.png", "image/png", png),
            await put("notes.txt", "text/plain", "云雀 sings".encode()),
            await put("blob.bin", "application/octet-stream", b"\x00\x01\x02"),
        )
        spec = build_run_spec(here.services.defaults, TaskOptions(), LOCAL_OWNER)
        made = await here.services.gateway.submit(
            Submission("look", spec, "web", attachments=files), LOCAL_OWNER
        )
        await here.end_of(made)
        content = here.model.requests[0]["messages"][0]["content"]
        assert content[0]["type"] == "image"
        words = "".join(block.get("text", "") for block in content)
        assert "云雀 sings" in words
        assert 'path="input/blob.bin" media_type="application/octet-stream" size="3"' in words
        assert "[a binary file, not shown]" in words
        assert words.endswith("look")
