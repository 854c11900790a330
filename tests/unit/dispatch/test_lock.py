"""The lock file of an SQLite database."""

import subprocess
import sys
from pathlib import Path

import pytest

from internal.agent.domain.errors import Conflict, StoreUnavailable
from internal.dispatch.lock import database_lock
from internal.observability.processes import SystemProcesses

HERE = SystemProcesses().current("gateway-1")
HOLD = """
import sys
from pathlib import Path
from internal.observability.processes import SystemProcesses
from internal.dispatch.lock import database_lock
with database_lock(Path(sys.argv[1]), SystemProcesses().current("gateway-0")):
    print("held", flush=True)
    sys.stdin.read()
"""


def lock_again(database: Path) -> None:
    with database_lock(database, HERE):
        raise AssertionError("two gateways")


def test_one_gateway_per_database(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    with database_lock(database, HERE) as has_lock:
        assert has_lock
        with pytest.raises(Conflict, match=f"process {HERE.pid} on {HERE.host}"):
            lock_again(database)
        with database_lock(tmp_path / "b.db", HERE):
            pass
    with database_lock(database, HERE):
        pass


def test_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be written: no such file"):
        lock_again(tmp_path / "none" / "a.db")


def test_lock_ends_with_its_process(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    command = [sys.executable, "-c", HOLD, str(database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Conflict, match=f"process {holder.pid} on"):
            lock_again(database)
        holder.kill()
    with database_lock(database, HERE):
        pass
