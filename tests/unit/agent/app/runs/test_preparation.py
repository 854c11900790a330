"""The system prompt of a run."""

from datetime import UTC, datetime

from internal.agent.app.runs.preparation import system_prompt
from internal.agent.domain.profiles import Profile


def test_the_system_prompt_describes_the_profile_and_the_gates() -> None:
    profile = Profile(role="a gardener", goal="grow", tone="dry", prompt="Mind the roses.")
    now = datetime.now(UTC)
    prompt = system_prompt(profile, "off", "/srv/garden", now)
    for words in ("a gardener", "grow", "dry", "Mind the roses.", "/srv/garden"):
        assert words in prompt
    assert "call `plan`" not in prompt
    assert "call `plan`" in system_prompt(profile, "strict", "/srv", now)
