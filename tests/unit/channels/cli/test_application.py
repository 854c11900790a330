"""The application that the composition root passes to the commands."""

from functools import partial
from pathlib import Path

import pytest

from internal.agent.domain.permissions.rules import RuleError
from internal.channels.cli.application import Application
from internal.config.loader import load
from larkspur import application as process


@pytest.fixture
def application(environ: dict[str, str]) -> Application:
    del environ["LARKSPUR_SANDBOX__PROVIDER"]
    return process.Application(partial(load, environ=environ))


def test_settings_without_a_file_are_the_defaults(application: Application, home: Path) -> None:
    settings = application.settings(None)
    assert (settings.home, settings.file, settings.configured) == (home, None, 0)
    assert (settings.provider, settings.key_error) == ("offline", "")


def test_missing_key_of_a_provider_is_named(environ: dict[str, str]) -> None:
    environ |= {"LARKSPUR_LLM__PROVIDER": "anthropic", "LARKSPUR_LLM__MODEL": "claude-x"}
    settings = process.Application(partial(load, environ=environ)).settings(None)
    assert "ANTHROPIC_API_KEY" in settings.key_error


def test_rules_are_checked(application: Application) -> None:
    application.check_rule("shell(ls)", allows=True)
    with pytest.raises(RuleError):
        application.check_rule("shell(", allows=False)


def test_file_that_is_no_database_fails_its_check(application: Application, home: Path) -> None:
    (home / "larkspur.db").write_bytes(b"text " * 1000)
    assert application.check_database(None).state == "fail"


def test_tools_have_a_risk_and_a_description(application: Application) -> None:
    tools = {tool.name: tool for tool in application.tools()}
    assert {"load_skill", "read_skill_file"} <= set(tools)
    assert tools["shell"].risk == "exec"
    assert all(tool.description for tool in tools.values())
