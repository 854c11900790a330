"""`larkspur lark-sim`."""

from tests.support.command_runner import CommandRunner


def test_port_out_of_range_is_a_usage_error(run: CommandRunner) -> None:
    simulated = run("lark-sim", "--port", "70000")
    assert (simulated.code, simulated.message) == (2, "--port must be between 0 and 65535.")


def test_credentials_must_be_printable_ascii(run: CommandRunner) -> None:
    assert run("lark-sim", "--app-id", "é", "--port", "0").code == 2
