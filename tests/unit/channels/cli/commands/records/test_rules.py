"""`larkspur rules`."""

from tests.support.command_runner import CommandRunner


def test_no_rules_is_an_empty_list(run: CommandRunner) -> None:
    assert run.local("rules", "--json").json == []
    assert run.local("rules").code == 0


def test_unknown_rule_cannot_be_removed(run: CommandRunner) -> None:
    assert run.local("rules", "remove", "7").code == 2
    assert run.local("rules", "remove").message.startswith("Usage:")
