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


def test_a_transcription_service_is_named(run: CommandRunner, environ: dict[str, str]) -> None:
    assert "audio" not in run("doctor").out
    environ["LARKSPUR_AUDIO__TRANSCRIPTION__MODEL"] = "whisper-1"
    environ["LARKSPUR_AUDIO__TRANSCRIPTION__BASE_URL"] = "http://127.0.0.1:1/v1"
    said = "Recordings are transcribed by whisper-1 at http://127.0.0.1:1/v1 (not tested)."
    assert f"ok    audio: {said}" in run("doctor").out


def test_check_is_one_line() -> None:
    check = Check("disk", "warn", "1 GiB free.", "Free some space.")
    assert format_check(check) == "warn  disk: 1 GiB free. Free some space."
