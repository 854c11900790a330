"""`larkspur doctor`."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from internal.agent.domain.events.envelope import rfc3339
from internal.agent.ports.sandbox import SandboxCapabilities
from internal.agent.store.runs import ProcessEntry
from internal.agent.store.stores import Stores
from internal.channels.cli.application import Check
from internal.channels.cli.commands.system.doctor import format_check
from internal.channels.cli.exit_codes import CONFIG
from internal.observability.processes import SystemProcesses
from internal.storage.database_url import open_database
from larkspur.sandbox_checks import describe_capabilities
from tests.support.command_runner import CommandRunner


def test_offline_model_is_a_warning(run: CommandRunner) -> None:
    checks = {check["name"]: check for check in run("doctor", "--json").json}
    assert checks["python"]["state"] == "ok"
    assert checks["sandbox"]["state"] == "warn"
    assert checks["model"]["state"] == "warn"
    assert checks["lark"]["sentence"] == "No app of Lark is set up."
    assert "ANTHROPIC_API_KEY" in checks["model"]["advice"]


def test_a_transcription_service_is_named(run: CommandRunner, environ: dict[str, str]) -> None:
    assert "audio" not in run("doctor").out
    environ["LARKSPUR_AUDIO__TRANSCRIPTION__MODEL"] = "whisper-1"
    environ["LARKSPUR_AUDIO__TRANSCRIPTION__BASE_URL"] = "http://127.0.0.1:1/v1"
    said = "Recordings are transcribed by whisper-1 at http://127.0.0.1:1/v1 (not tested)."
    assert f"ok    audio: {said}" in run("doctor").out


def test_search_providers_are_named_in_their_order(
    run: CommandRunner, environ: dict[str, str]
) -> None:
    none = "ok    web_search: web_search is not offered: no search provider can be asked."
    assert none in run("doctor").out.splitlines()
    environ["TAVILY_API_KEY"], environ["BRAVE_API_KEY"] = "canary-tavily", "canary-brave"
    said = "ok    web_search: web_search asks Brave Search, then Tavily (not tested)."
    found = run("doctor")
    assert said in found.out.splitlines()
    assert "canary" not in found.out
    environ["LARKSPUR_TOOLS__WEB_SEARCH__PROVIDERS"] = '["exa", "tavily"]'
    assert (
        "warn  web_search: web_search asks Tavily (not tested). Exa: no API key is set"
        " (EXA_API_KEY)."
    ) in run("doctor").out.splitlines()


@pytest.mark.needs("namespaces")
def test_the_sandbox_that_is_used_is_described(
    run: CommandRunner, environ: dict[str, str], tmp_path: Path
) -> None:
    native = run("doctor", "sandbox").out.splitlines()
    assert native[0] == "ok    sandbox native: Commands reach what your user reaches."
    assert native[1].endswith("Nothing bounds the memory and the processes of a command.")
    assert native[2].startswith("ok    sandbox native: run_code runs python")
    assert native[3].startswith("warn  sandbox: Commands are not isolated")
    environ["LARKSPUR_SANDBOX__PROVIDER"] = "bubblewrap"
    environ["LARKSPUR_SANDBOX__PACKAGES"] = str(tmp_path / "requirements.txt")
    (tmp_path / "requirements.txt").write_text("six\n")
    isolated = run("doctor", "sandbox").out
    assert "ok    packages: The next start installs the packages of" in isolated
    assert "ok    sandbox bubblewrap: No process outlives its command." in isolated
    assert "Commands have no network but the hosts that are permitted." in isolated
    assert "hold" in isolated.splitlines()[-3]
    assert "ll commands together" in isolated.splitlines()[-2]
    assert isolated.splitlines()[-1].startswith("ok    sandbox bubblewrap: run_code runs python")
    (tmp_path / "requirements.txt").unlink()
    everything = run("doctor")
    assert "fail  packages: sandbox.packages: No such file or directory" in everything.out
    assert "ok    sandbox: Commands run isolated (bubblewrap)" in everything.out
    assert everything.code == CONFIG


DESCRIBED = {
    SandboxCapabilities(isolated=True, bounds="process", runtimes=("bash",)): [
        (
            "Commands are isolated, but see the names of other files and can change the protected"
            " files of a workspace."
        ),
        "Commands have no network, and no host can be permitted.",
        "The bound of memory holds for each process of a command.",
        "Nothing bounds all commands together: this needs writable control groups.",
        "run_code runs bash, not python and node.",
    ],
    SandboxCapabilities(
        isolated=True,
        hosts=True,
        protects=True,
        hides=True,
        bounds="command",
        bounded_together=("memory", "processors"),
        packages=("a==1",),
    ): [
        "Commands are isolated.",
        "Commands have no network but the hosts that are permitted.",
        "The bounds of memory and processes hold for a whole command.",
        "All commands together leave a part of memory and processors to Larkspur.",
        "run_code runs python, node and bash.",
        "python3 has these packages: a==1.",
    ],
    SandboxCapabilities(runtimes=()): [
        "Commands reach what your user reaches.",
        "Nothing bounds the memory and the processes of a command.",
        "run_code runs nothing, not python, node and bash.",
    ],
}


@pytest.mark.parametrize(("capabilities", "sentences"), DESCRIBED.items())
def test_capabilities_are_described(
    capabilities: SandboxCapabilities, sentences: list[str]
) -> None:
    assert list(describe_capabilities(capabilities)) == sentences


def test_check_is_one_line() -> None:
    check = Check("disk", "warn", "1 GiB free.", "Free some space.")
    assert format_check(check) == "warn  disk: 1 GiB free. Free some space."


def test_processes_are_listed_with_their_leases(run: CommandRunner, home: Path) -> None:
    run.local("dead-letters")  # creates the database
    assert "process:" not in run("doctor").out
    asyncio.run(_add_processes(home / "larkspur.db"))
    worker, gateway = [line for line in run("doctor").out.splitlines() if "process:" in line]
    assert gateway.startswith(
        "ok    process: gateway 12 on build-1, since 2026-11-22 10:00 UTC: larkspur 0.1.0,"
        " 0 active runs, leads lark:a, lease renewed 1"
    )
    assert worker.startswith(
        "warn  process: worker 99 on build-2, since 2026-11-22 09:00 UTC: larkspur 0.1.0,"
        " 0 active runs, ended, lease renewed "
    )
    assert worker.endswith(" s ago. Other processes continue its runs.")


async def _add_processes(path: Path) -> None:
    """Store a gateway that lives, which leads an account, and a worker that has ended."""
    stores, here = Stores(), str(SystemProcesses().current("gateway-1"))
    elsewhere = "worker-1/99/1/other/other/build-2"
    until = rfc3339(datetime.now(UTC) + timedelta(seconds=20))
    started, ended = "2026-11-22T09:00:00.000Z", "2026-11-22T10:00:30.000Z"
    entries = (
        ProcessEntry(here, "gateway", "build-1", 12, "0.1.0", "2026-11-22T10:00:00.000Z", until),
        ProcessEntry(elsewhere, "worker", "build-2", 99, "0.1.0", started, ended),
    )
    async with open_database(path) as database:
        for entry in entries:
            await database.write(partial(stores.processes.add, entry))
        await database.write(partial(stores.leaderships.claim, "lark:a", here, until, None))
