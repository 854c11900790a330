"""`larkspur doctor`."""

from internal.channels.cli.application import Check
from internal.channels.cli.commands.system.doctor import format_check
from tests.unit.channels.cli.commands.conftest import CommandRunner


def test_offline_model_is_a_warning(run: CommandRunner) -> None:
    checks = {check["name"]: check for check in run("doctor", "--json").json}
    assert checks["python"]["state"] == "ok"
    assert checks["sandbox"]["state"] == "warn"
    assert checks["model"]["state"] == "warn"
    assert checks["lark"]["sentence"] == "The Lark channel is off."
    assert "ANTHROPIC_API_KEY" in checks["model"]["advice"]


def test_check_is_one_line() -> None:
    check = Check("disk", "warn", "1 GiB free.", "Free some space.")
    assert format_check(check) == "warn  disk: 1 GiB free. Free some space."
