"""The sandbox of a container engine, with the real podman (`make chaos`)."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest
from msgspec import structs

from internal.agent.domain.errors import SandboxUnavailable, ToolError
from internal.agent.ports.sandbox import FileAccess, SandboxResult
from internal.sandbox.container import ContainerSandbox
from internal.sandbox.limits.resource_limits import ResourceLimits
from internal.sandbox.probe import probe_sandbox
from internal.sandbox.roots import PrivatePlaces
from internal.sandbox.selection import ContainerSettings, open_sandbox
from internal.sandbox.workspaces import SessionFolders
from tests.support.bubblewrap_places import MEGABYTE, Place
from tests.support.mount_attacks import ROLES, attack

pytestmark = [pytest.mark.chaos, pytest.mark.podman, pytest.mark.timeout(300)]

IMAGE = "larkspur-test:1"
APPLETS = (
    *("sh", "cat", "touch", "mount", "unshare", "grep", "tr", "setsid", "sleep", "stat", "id"),
    *("ls", "wc", "rm", "yes", "seq", "head", "sha256sum"),
)


def build_image(engine: Path, folder: Path) -> None:
    """Make an image of busybox and of this machine's bash: there is no registry."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    for name in ("tmp", "proc", "dev", "sys", "usr"):
        (folder / name).mkdir()
    shutil.copy("/bin/busybox", programs)
    for name in APPLETS:
        (programs / name).symlink_to("busybox")
    shutil.copy("/bin/bash", programs)
    listed = subprocess.run(["ldd", "/bin/bash"], capture_output=True, text=True, check=True)
    for word in (word for word in listed.stdout.split() if word.startswith("/")):
        target = folder / word.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(word, target)
    archive = subprocess.run(["tar", "-C", folder, "-c", "."], capture_output=True, check=True)
    subprocess.run([engine, "import", "-", IMAGE], input=archive.stdout, check=True)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """podman with its own storage; runc and cgroupfs work with every layout of control groups."""
    root = tmp_path_factory.mktemp("engine")
    program = root / "engine"
    options = f"--root {root}/storage --runroot {root}/run --storage-driver vfs"
    program.write_text(
        f'#!/bin/sh\nexec podman {options} --runtime runc --cgroup-manager cgroupfs "$@"\n'
    )
    program.chmod(0o755)
    build_image(program, root / "image")
    yield str(program)
    subprocess.run([program, "rm", "--all", "--force"], check=True, capture_output=True)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def sandbox(engine: str, place: Place, limits: ResourceLimits | None = None) -> ContainerSandbox:
    private = PrivatePlaces((place.home, place.settings))
    return ContainerSandbox(engine, IMAGE, place.homes, private=private, limits=limits)


async def test_the_probe_finds_every_wall(engine: str, place: Place) -> None:
    walls, runtimes = await probe_sandbox(sandbox(engine, place), place.homes)
    assert runtimes == ("bash",)
    assert [(wall.name, wall.reason) for wall in walls if not wall.holds] == []


async def test_a_command_in_a_container(engine: str, place: Place) -> None:
    protected = place.workspace / "AGENTS.md"
    protected.write_text("rules")
    script = (
        "cat; echo $KEY; echo made >made; echo kept >~/kept; echo x >AGENTS.md;"
        f" ls -A .larkspur-home; cat larkspur.yaml {place.outside}/secret; exit 3"
    )
    command = structs.replace(
        place.command(script),
        stdin=b"given\n",
        environment={"KEY": "of-a-server"},
        access=FileAccess((str(place.workspace),), (str(protected),)),
    )
    assert await sandbox(engine, place).run(command, place.take) == SandboxResult(3)
    assert place.output.startswith(b"given\nof-a-server\n")
    assert place.token.encode() not in place.output
    assert (place.workspace / "made").read_text() == "made\n"
    assert protected.read_text() == "rules"


@pytest.mark.parametrize("role", ROLES)
async def test_a_root_that_changes_all_the_time_is_the_right_one_or_none(
    engine: str, role: str, tmp_path: Path
) -> None:
    runs = ContainerSandbox(engine, IMAGE, SessionFolders(tmp_path / "homes"))
    await attack(runs, role, tmp_path, "outer")


async def test_containers_end_with_their_commands(engine: str, place: Place) -> None:
    def containers() -> str:
        listed = subprocess.run([engine, "ps", "-aq"], capture_output=True, text=True, check=True)
        return listed.stdout

    runs = sandbox(engine, place, ResourceLimits(output_bytes=MEGABYTE))
    assert (await runs.run(place.command("sleep 600", 2.0), place.take)).timed_out
    assert (await runs.run(place.command("yes"), lambda _: None)).exceeded == "output"
    running = asyncio.create_task(runs.run(place.command("echo ready; sleep 600"), place.take))
    await place.ready.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await asyncio.to_thread(containers) == ""
    assert place.survivors() == []


async def test_containers_of_killed_processes_are_removed(engine: str, place: Place) -> None:
    def say(*argv: str) -> list[str]:
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        return sorted(done.stdout.split())

    (ended,) = await asyncio.to_thread(say, "sh", "-c", "echo $$")
    names = [f"larkspur-{ended}-1", f"larkspur-{os.getpid()}-0", "others"]
    for name in names:
        create = (engine, "create", "--name", name, "--network", "none", IMAGE, "sh")
        await asyncio.to_thread(say, *create)
    chosen = ContainerSettings(engine, IMAGE)
    async with open_sandbox("container", place.homes, PrivatePlaces(), container=chosen) as opened:
        assert opened.provider == "container"
    listed = await asyncio.to_thread(say, engine, "ps", "-a", "--format", "{{.Names}}")
    assert listed == sorted(names[1:])
    await asyncio.to_thread(say, engine, "rm", "--force", *names[1:])


async def test_what_is_missing_is_named(engine: str, place: Place) -> None:
    absent = ContainerSandbox(engine, "no-such-image:1", place.homes)
    with pytest.raises(ToolError, match="no-such-image"):
        await absent.run(place.command("true"), place.take)
    for chosen, said in (
        (ContainerSettings("/no/such/engine", IMAGE), "/no/such/engine does not work"),
        (ContainerSettings(engine, ""), "sandbox.image"),
    ):
        with pytest.raises(SandboxUnavailable, match=said):
            async with open_sandbox("container", place.homes, PrivatePlaces(), container=chosen):
                pass
