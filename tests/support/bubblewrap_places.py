"""Sandboxed folders, with an index of packages."""

import asyncio
import contextlib
import functools
import http.server
import secrets
import threading
import zipfile
from collections.abc import Generator
from pathlib import Path

from internal.agent.domain.ids import SessionId
from internal.agent.ports.sandbox import FileAccess, SandboxCommand, SandboxResult
from internal.sandbox.bubblewrap import BubblewrapSandbox
from internal.sandbox.limits.control_groups import ControlGroups
from internal.sandbox.limits.resource_limits import ResourceLimits
from internal.sandbox.roots import PrivatePlaces
from internal.sandbox.workspaces import SessionFolders

SESSION = SessionId("session-1")


MEGABYTE = 1_000_000


class Place:
    """A workspace, a Larkspur home folder in it and a folder outside, with a token in each file."""

    def __init__(self, root: Path) -> None:
        self.token = f"canary-{secrets.token_hex(8)}"
        self.workspace, self.outside = root / "workspace", root / "outside"
        self.home = self.workspace / ".larkspur-home"
        for folder in (self.workspace, self.outside, self.home):
            folder.mkdir()
            (folder / "secret").write_text(self.token)
        self.settings = self.workspace / "larkspur.yaml"
        self.settings.write_text(self.token)
        self.homes = SessionFolders(root / "homes")
        self.output = b""
        self.ready = asyncio.Event()

    def sandbox(
        self,
        limits: ResourceLimits | None = None,
        groups: ControlGroups | None = None,
        *,
        private_networks: bool = False,
    ) -> BubblewrapSandbox:
        return BubblewrapSandbox(
            self.homes,
            private=PrivatePlaces((self.home, self.settings), (self.home / "files",)),
            limits=limits,
            private_networks=private_networks,
            groups=groups,
        )

    def command(
        self, script: str, seconds: float = 60.0, read_only: tuple[str, ...] = ()
    ) -> SandboxCommand:
        return SandboxCommand(
            ("bash", "-c", script),
            str(self.workspace),
            seconds,
            SESSION,
            environment={"TOKEN": self.token},
            access=FileAccess((str(self.workspace),), read_only),
        )

    def take(self, chunk: bytes) -> None:
        self.output += chunk
        if b"ready" in self.output:
            self.ready.set()

    async def run(
        self, script: str, seconds: float = 60.0, read_only: tuple[str, ...] = ()
    ) -> SandboxResult:
        self.output = b""
        return await self.sandbox().run(self.command(script, seconds, read_only), self.take)

    def survivors(self) -> list[str]:
        """Return the processes of the machine with the token in their environment."""
        return [
            process.parent.name
            for process in Path("/proc").glob("[0-9]*/environ")
            if self.token.encode() in read(process)
        ]


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def until_closed(before: int) -> None:
    """Return when no more descriptors are open than before: the loop closes some a step later."""
    async with asyncio.timeout(10):
        while descriptors() > before:  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(0)  # one step


def wheel(folder: Path) -> Path:
    """Make the smallest package that pip installs."""
    path = folder / "canary-1.0-py3-none-any.whl"
    info = "canary-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("canary.py", "print('sings')")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: canary\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


class Index(http.server.SimpleHTTPRequestHandler):
    """A package index on this machine."""

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@contextlib.contextmanager
def package_index(tmp_path: Path, address: str = "127.0.0.1") -> Generator[int]:
    """Serve one package, canary, and yield the port."""
    folder = tmp_path / "index"
    (folder / "canary").mkdir(parents=True)
    name = wheel(folder / "canary").name
    (folder / "canary" / "index.html").write_text(f'<a href="{name}">{name}</a>')
    handler = functools.partial(Index, directory=folder)
    with http.server.ThreadingHTTPServer((address, 0), handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield server.server_address[1]
        server.shutdown()
        serving.join()


ADDRESS = "127.0.0.2"  # programs use no proxy for 127.0.0.1
