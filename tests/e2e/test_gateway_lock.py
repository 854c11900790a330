"""One gateway per database, as processes: whatever home folder or path names the database."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from internal.agent.ports.runtime import ProcessIdentity
from internal.config.home import prepare
from internal.observability.processes import SystemProcesses
from tests import ROOT

LARKSPUR = Path(sys.executable).with_name("larkspur")
WITHOUT_LOCKS = [sys.executable, str(ROOT / "tests/support/refused_locks.py")]
CONFLICT = 2


class Gateways:
    """Starts gateways on one database file."""

    def __init__(self, environ: dict[str, str], folder: Path) -> None:
        self._environ = {**environ, "LARKSPUR_LLM__PROVIDER": "offline"}
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        self.database = prepare(folder / "data") / "larkspur.db"

    def start(
        self, home: str, database: Path | None = None, before: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        """Start a gateway with a home folder of its own."""
        environ = {
            **self._environ,
            "LARKSPUR_HOME": str(self._folder / home),
            "LARKSPUR_DATABASE__URL": f"sqlite:///{database or self.database}",
        }
        command = [*before, str(LARKSPUR), "serve", "--port", "0"]
        started = subprocess.Popen(
            command,
            env=environ,
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self._started.append(started)
        return started

    def serve(self, home: str, before: Sequence[str] = ()) -> int:
        """Start a gateway that must become ready; return its pid."""
        started = self.start(home, before=before)
        assert started.stderr is not None
        seen = b""
        while b" is at http" not in seen:
            line = started.stderr.readline()
            assert line, seen.decode()
            seen += line
        return started.pid

    def refusal(self, home: str, database: Path | None = None, before: Sequence[str] = ()) -> str:
        """Start a gateway that must be refused; return its message."""
        started = self.start(home, database, before)
        _, message = started.communicate(timeout=60)
        assert started.returncode == CONFLICT, message.decode()
        return message.decode()

    def end(self, pid: int, number: signal.Signals = signal.SIGKILL) -> None:
        """End a gateway."""
        started = next(each for each in self._started if each.pid == pid)
        started.send_signal(number)
        started.wait()

    def owner(self) -> ProcessIdentity | None:
        """Return the process that the database names."""
        with closing(sqlite3.connect(self.database)) as connection:
            rows = connection.execute("select owner from processes").fetchall()
        return ProcessIdentity.parse(rows[0][0]) if rows else None

    def set_owner(self, owner: ProcessIdentity, lease_until: str) -> None:
        with closing(sqlite3.connect(self.database)) as connection:
            connection.execute(
                "insert into processes values (?, 'gateway', 'far', 1, '1.0', '', ?)",
                (str(owner), lease_until),
            )
            connection.commit()

    def close(self) -> None:
        for each in self._started:
            if each.poll() is None:
                each.kill()
            each.communicate()


@pytest.fixture
def gateways(environ: dict[str, str], tmp_path: Path) -> Iterator[Gateways]:
    found = Gateways(environ, tmp_path)
    try:
        yield found
    finally:
        found.close()


def names(pid: int) -> str:
    return f"process {pid} on {socket.gethostname()}"


@pytest.mark.slow
def test_second_home_on_the_database_is_refused_until_the_first_is_killed(
    gateways: Gateways,
) -> None:
    first = gateways.serve("one")
    assert names(first) in gateways.refusal("two")
    gateways.end(first)
    second = gateways.serve("two")
    assert names(second) in gateways.refusal("one")
    gateways.end(second, signal.SIGTERM)
    assert gateways.owner() is None


@pytest.mark.slow
def test_symbolic_links_name_the_same_database(gateways: Gateways, tmp_path: Path) -> None:
    first = gateways.serve("one")
    (tmp_path / "link.db").symlink_to(gateways.database)
    (tmp_path / "folder").symlink_to(gateways.database.parent)
    for path in (
        tmp_path / "link.db",
        tmp_path / "folder" / "larkspur.db",
        gateways.database.parent / ".." / "data" / "larkspur.db",
    ):
        assert names(first) in gateways.refusal("two", path)


@pytest.mark.slow
def test_stopped_gateway_is_alive(gateways: Gateways) -> None:
    first = gateways.serve("one", WITHOUT_LOCKS)
    os.kill(first, signal.SIGSTOP)
    assert names(first) in gateways.refusal("two", before=WITHOUT_LOCKS)


@pytest.mark.slow
def test_row_decides_when_the_lock_file_was_deleted(gateways: Gateways) -> None:
    first = gateways.serve("one")
    (lock,) = gateways.database.parent.glob("*-gateway")
    lock.unlink()
    assert names(first) in gateways.refusal("two")


@pytest.mark.slow
def test_row_decides_on_a_file_system_without_locks(gateways: Gateways) -> None:
    first = gateways.serve("one", WITHOUT_LOCKS)
    assert names(first) in gateways.refusal("two", before=WITHOUT_LOCKS)
    gateways.end(first)
    gateways.serve("two", WITHOUT_LOCKS)


@pytest.mark.slow
def test_pid_of_another_process_is_not_the_gateway(gateways: Gateways) -> None:
    gateways.end(gateways.serve("one"), signal.SIGTERM)
    reused = SystemProcesses().current("gateway-1")._replace(start="1")
    gateways.set_owner(reused, "9999")
    gateways.serve("two")


@pytest.mark.slow
def test_gateway_of_another_machine_counts_until_its_lease_ends(gateways: Gateways) -> None:
    gateways.end(gateways.serve("one"), signal.SIGTERM)
    elsewhere = SystemProcesses().current("gateway-1")._replace(boot="b", host="far")
    gateways.set_owner(elsewhere, "2999-01-01T00:00:00.000Z")
    message = gateways.refusal("two")
    assert f"process {elsewhere.pid} on far" in message
    assert "its lease lasts until 2999-01-01T00:00:00.000Z" in message
    with closing(sqlite3.connect(gateways.database)) as connection:
        connection.execute("update processes set lease_until = '2000'")
        connection.commit()
    gateways.serve("two")
