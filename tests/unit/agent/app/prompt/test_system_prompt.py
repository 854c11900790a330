"""The parts of the system prompt."""

from datetime import UTC, datetime

from internal.agent.app.prompt.system_prompt import command_rules, system_prompt
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.tasks import Profile
from internal.agent.ports.sandbox import SandboxCapabilities


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
