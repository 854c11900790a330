"""The whole system prompt of each shipped profile, as the model reads it.

`python -m tests.unit.agent.app.prompt.test_profile_prompts` writes the expected files anew.
"""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from internal.agent.app.prompt.system_prompt import command_rules, system_prompt
from internal.agent.domain.permissions.policy import Policy
from internal.agent.ports.sandbox import SandboxCapabilities
from internal.profiles.library import ProfileLibrary, shipped_folder
from internal.tools.registry import TOOLS

EXPECTED = Path(__file__).with_name("golden")
PROFILES = ProfileLibrary([shipped_folder()], [each.spec.name for each in TOOLS])


def prompt_of(name: str) -> str:
    able = SandboxCapabilities(isolated=True, hosts=True)
    commands = command_rules(Policy(), able) if PROFILES[name].grants("shell") else ""
    today = datetime(2026, 11, 24, tzinfo=UTC)
    return system_prompt(PROFILES[name], "strict", "/srv/garden", today, commands=commands)


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_the_prompt_of_a_profile(name: str) -> None:
    assert prompt_of(name) == (EXPECTED / f"{name}.txt").read_text(encoding="utf-8")


def test_no_profile_is_forgotten() -> None:
    assert sorted(path.stem for path in EXPECTED.iterdir()) == sorted(PROFILES)


if __name__ == "__main__":
    for each in PROFILES:
        (EXPECTED / f"{each}.txt").write_text(prompt_of(each), encoding="utf-8")
