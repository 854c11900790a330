"""Systemd units, checked by `systemd-analyze` and against the commands that they start."""

import re
import subprocess
from pathlib import Path

import pytest

from internal.channels.cli.commands.registry import build_parser
from tests import ROOT
from tests.support.gateway_process import LARKSPUR

FOLDER = ROOT / "configs/deploy"
GATEWAY, WORKER = "larkspur.service", "larkspur-worker@.service"
UNITS = pytest.mark.parametrize("name", [GATEWAY, WORKER])
SYSTEMD = pytest.mark.needs("systemd")
MAX_EXPOSURE = 45
"""Tenths of the scale of `systemd-analyze security`, on which 100 is no restriction at all."""
UNSUITABLE = {
    *("ProtectProc", "ProcSubset", "ProtectKernelTunables", "ProtectKernelLogs"),
    *("ProtectHostname", "RestrictNamespaces", "PrivateUsers", "MemoryDenyWriteExecute"),
}
"""Restrictions that keep bubblewrap from working, or Node in it."""


def settings(name: str) -> dict[str, list[str]]:
    """Return the values of each setting of a unit."""
    found: dict[str, list[str]] = {}
    for key, value in re.findall(r"^(\w+)=(.*)$", (FOLDER / name).read_text(), re.MULTILINE):
        found.setdefault(key, []).append(value)
    return found


def analyze(name: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `systemd-analyze` on a unit whose program is the installed one."""
    text = (FOLDER / name).read_text()
    unit = folder / name.replace("@", "@1")
    unit.write_text(text.replace("/opt/larkspur/bin/larkspur", str(LARKSPUR)))
    command = ("systemd-analyze", *arguments, str(unit))
    return subprocess.run(command, capture_output=True, text=True, check=False)


@SYSTEMD
@UNITS
def test_systemd_finds_no_mistake(name: str, tmp_path: Path) -> None:
    verified = analyze(name, tmp_path, "verify", "--man=no")
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")


@SYSTEMD
def test_systemd_finds_mistakes(tmp_path: Path) -> None:
    text = (FOLDER / GATEWAY).read_text().replace("KillMode=mixed", "KillMode=some\nUnknown=yes")
    (tmp_path / GATEWAY).write_text(text)
    said = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / GATEWAY],
        capture_output=True,
        text=True,
        check=False,
    ).stderr
    for found in ("kill mode", "Unknown key", "/opt/larkspur/bin/larkspur is not executable"):
        assert found in said


@SYSTEMD
@UNITS
def test_a_unit_is_restricted(name: str, tmp_path: Path) -> None:
    checked = analyze(
        name, tmp_path, "security", "--offline=true", "--no-pager", f"--threshold={MAX_EXPOSURE}"
    )
    assert checked.returncode == 0, checked.stdout[-200:]
    given = settings(name)
    assert given["NoNewPrivileges"] == ["yes"]
    assert given["ProtectSystem"] == ["strict"]
    assert UNSUITABLE & set(given) == set()
    text = (FOLDER / name).read_text()
    assert [each for each in UNSUITABLE if f"{each}=" not in text] == []  # the unit names them


@UNITS
def test_a_unit_starts_a_command_and_gives_it_time_to_stop(name: str) -> None:
    given = settings(name)
    [start] = given["ExecStart"]
    program, *arguments = start.split()
    assert program == "/opt/larkspur/bin/larkspur"
    build_parser().parse_args(arguments)
    assert (given["Type"], given["KillMode"], given["TimeoutStopSec"]) == (
        ["exec"],
        ["mixed"],
        ["60"],
    )
    assert given["Restart"] == ["on-failure"]
    [home] = [value.partition("=")[2] for value in given["Environment"]]
    assert home == f"/var/lib/{given['StateDirectory'][0]}" == given["WorkingDirectory"][0]
    assert given["StateDirectoryMode"] == ["0700"]


def test_both_units_have_the_same_restrictions() -> None:
    gateway, worker = settings(GATEWAY), settings(WORKER)
    different = {key for key in {*gateway, *worker} if gateway.get(key) != worker.get(key)}
    assert different == {"Description", "ExecStart"}
