"""Commands that attack the mounts of their sandbox."""

from collections.abc import Callable
from pathlib import Path

from internal.agent.domain.errors import ToolError
from internal.agent.domain.ids import SessionId
from internal.agent.ports.sandbox import FileAccess, Sandbox, SandboxCommand
from tests.support.exchanged_folders import exchanging


async def run(sandbox: Sandbox, workspace: Path, script: str, access: FileAccess) -> str:
    command = SandboxCommand(
        ("bash", "-c", script), str(workspace), 20.0, SessionId("session-1"), access=access
    )
    output = bytearray()
    await sandbox.run(command, output.extend)
    return output.decode()


ROLES: dict[str, Callable[[str], FileAccess]] = {
    "writable": lambda path: FileAccess((path,)),
    "read-only": lambda path: FileAccess(read_only=(path,)),
    "link": lambda path: FileAccess(read_only=(path,), links={path: path}),
}


async def attack(
    sandbox: Sandbox, role: str, folder: Path, place: str, rounds: int = 10
) -> set[str]:
    """Run commands while a root, or a folder above it, is swapped for a link to a secret.

    Return the outputs of the commands: `right`, or `none` for a command that was not started.
    """
    data, secret = folder / "outer" / "data", folder / "secret"
    for each in (data, secret / "data"):
        each.mkdir(parents=True)
    (data / "name").write_text("right")
    for each in (secret, secret / "data"):
        (each / "canary").write_text("canary")
    exchanged = folder if place == "outer" else data.parent
    (exchanged / "link").symlink_to(secret)
    script, outcomes = f"cat {data}/*; touch {data}/made", set[str]()
    with exchanging(exchanged, place, "link"):
        for _ in range(rounds):
            try:
                said = await run(sandbox, Path("/"), script, ROLES[role](str(data)))
            except ToolError as error:
                said = str(error)
            assert "canary" not in said
            outcomes.add("right" if "right" in said else "none")
    assert not (secret / "made").exists()
    assert not (secret / "data" / "made").exists()
    return outcomes
