"""The start of an interactive session."""

from tests.support.command_runner import CommandRunner


def test_session_needs_a_terminal(run: CommandRunner) -> None:
    started = run.local()
    assert started.code == 2
    assert started.message.startswith("Standard input or output is not a terminal.")
