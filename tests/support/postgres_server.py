"""A PostgreSQL server for tests: one for each pytest process, one database for each test."""

import asyncio
import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg

from internal.storage.database_url import open_database
from tests.support.ports import free_port

USER, PASSWORD = "larkspur", "password-of-the-tests"
_ADMIN = "postgres"
_TEMPLATE = "larkspur_template"
# A killed server loses nothing that the kernel has; dropping a database is 60 times as fast.
_FAST = {"fsync": "off", "full_page_writes": "off"}
_SETTINGS = {
    "max_connections": "200",
    "shared_buffers": "32MB",
    "max_wal_size": "128MB",
    "autovacuum": "off",
}
_numbers = count(1)
_starter = ThreadPoolExecutor(1)
"""The thread that starts servers: each ends when the thread that started it has ended."""


class PostgresServer:
    """A server on 127.0.0.1 in a folder of its own, which keeps its port when it is restarted.

    With `is_durable` commits are on disk, as in operation.
    """

    def __init__(self, binaries: Path, *, is_durable: bool = False) -> None:
        self._binaries = binaries
        self._settings = _SETTINGS if is_durable else _SETTINGS | _FAST
        self.folder = Path(tempfile.mkdtemp(prefix="larkspur-pg-"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        create_cluster(binaries, self.folder)

    def url(self, name: str, *, user: str = USER, password: str = PASSWORD) -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{name}"

    def start(self) -> None:
        options = [f"--{name.replace('_', '-')}={value}" for name, value in self._settings.items()]
        address = (f"--port={self.port}", "--listen-addresses=127.0.0.1", "-k", str(self.folder))
        with (self.folder / "log").open("ab") as log:
            self._process = _starter.submit(
                subprocess.Popen[bytes],
                [*_as_postgres("--pdeathsig", "QUIT"), str(self._binaries / "postgres"),
                 "-D", str(self.folder / "data"), *address, *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            ).result()  # fmt: skip
        self._wait_until_ready()

    def stop(self, stop_signal: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT ends all connections, SIGQUIT is like a crash."""
        if self._process is not None:
            self._process.send_signal(stop_signal)
            self._process.wait(60)
            self._process = None

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def sql(
        self, statement: str, name: str = "postgres", *, user: str = _ADMIN
    ) -> list[tuple[Any, ...]]:
        """Execute a statement in a connection of its own and return its rows."""
        rows: list[tuple[Any, ...]] = []
        failures: list[Exception] = []

        async def execute() -> None:
            connection = await asyncpg.connect(self.url(name, user=user))
            try:
                rows.extend(tuple(row) for row in await connection.fetch(statement))
            finally:
                await connection.close()

        def run() -> None:
            try:
                asyncio.run(execute())
            except Exception as error:  # noqa: BLE001 - raised below, in the thread of the caller
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if failures:
            raise failures[0]
        return rows

    def create_role(self) -> None:
        self.sql(f"create role {USER} login createdb password '{PASSWORD}'")

    def create_database(self, *, template: str = _TEMPLATE, options: str = "") -> str:
        """Create a database and return its name. The template has the tables of Larkspur."""
        name = f"test_{next(_numbers)}"
        self.sql(f"create database {name} owner {USER} template {template} {options}")
        return name

    def drop_database(self, name: str) -> None:
        self.sql(f"drop database {name} with (force)")

    def _wait_until_ready(self) -> None:
        command = [
            str(self._binaries / "pg_isready"),
            "-q",
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
        ]
        for _ in range(600):
            if subprocess.run(command, check=False).returncode == 0:
                return
            assert self._process is not None
            assert self._process.poll() is None, (self.folder / "log").read_text(encoding="utf-8")
            threading.Event().wait(0.05)
        raise TimeoutError((self.folder / "log").read_text(encoding="utf-8"))


@cache
def shared_server() -> PostgresServer:
    """Return the server of this process, which is started by the first test that needs it."""
    binaries = find_binaries()
    assert binaries, "PostgreSQL is not installed: install it, or run pytest with -m 'not postgres'"
    server = PostgresServer(binaries)
    atexit.register(server.remove)
    server.start()
    server.create_role()
    server.sql(f"create database {_TEMPLATE} owner {USER}")
    thread = threading.Thread(target=lambda: asyncio.run(_create_tables(server.url(_TEMPLATE))))
    thread.start()
    thread.join()
    return server


@asynccontextmanager
async def postgres_url() -> AsyncGenerator[str]:
    """Create a database with the tables of Larkspur, and drop it at the end."""
    server = shared_server()
    name = server.create_database()
    try:
        yield server.url(name)
    finally:
        server.drop_database(name)


def find_binaries() -> Path | None:
    """Return the folder of the newest server, which Debian keeps out of PATH."""
    folders = Path("/usr/lib/postgresql").glob("*/bin")
    found = [folder for folder in folders if (folder / "initdb").exists()]
    return max(found, key=lambda folder: int(folder.parent.name), default=None)


def create_cluster(binaries: Path, folder: Path) -> None:
    """Create the data of a server in `data` of a folder.

    Raises:
        RuntimeError: initdb failed; its text says why.
        KeyError: this process is root and there is no user postgres.
    """
    if os.geteuid() == 0:
        account = pwd.getpwnam("postgres")
        os.chown(folder, account.pw_uid, account.pw_gid)
    password = folder / "password"
    password.write_text(PASSWORD, encoding="utf-8")
    try:  # a locale whose order differs from that of the bytes, as most installations have
        subprocess.run(
            [*_as_postgres(), str(binaries / "initdb"), "-D", str(folder / "data"),
             "--username", _ADMIN, "--pwfile", str(password), "--auth=scram-sha-256",
             "--encoding=UTF8", "--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en",
             "--no-sync"],
            check=True, capture_output=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        raise RuntimeError(error.stderr.decode()) from error


async def _create_tables(url: str) -> None:
    async with open_database(url):
        pass


def _as_postgres(*options: str) -> list[str]:
    """Return the command that runs a program as a user who may run a server: not as root."""
    if os.geteuid() == 0:
        options = (*options, "--reuid=postgres", "--regid=postgres", "--clear-groups")
    return ["setpriv", *options, "--"]
