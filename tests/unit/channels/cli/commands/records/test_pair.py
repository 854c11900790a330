"""`larkspur pair`."""

from tests.support.command_runner import CommandRunner


def test_code_is_printed_and_listed_nowhere(run: CommandRunner) -> None:
    paired = run.local("pair", "--role", "talk", "--json")

    assert paired.json["role"] == "talk"
    assert paired.json["code"] not in run.local("audit").out
    assert run.local("pair", "list", "--json").json == []


def test_remove_needs_an_id(run: CommandRunner) -> None:
    removed = run.local("pair", "remove")
    assert (removed.code, removed.message[:6]) == (2, "Usage:")
