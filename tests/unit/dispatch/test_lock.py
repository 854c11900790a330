"""The lock that allows one dispatcher per data folder."""

import subprocess
import sys
from pathlib import Path

import pytest

from internal.agent.domain.errors import Conflict, StoreUnavailable
from internal.dispatch.lock import dispatcher_lock

HOLD = """
import sys
from pathlib import Path
from internal.dispatch.lock import dispatcher_lock
with dispatcher_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def lock_again(folder: Path) -> None:
    with dispatcher_lock(folder):
        raise AssertionError("two dispatchers")


def test_one_dispatcher_per_folder(tmp_path: Path) -> None:
    with dispatcher_lock(tmp_path), pytest.raises(Conflict, match="already serves"):
        lock_again(tmp_path)
    with dispatcher_lock(tmp_path):
        pass


def test_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="is not writable"):
        lock_again(tmp_path / "none")


def test_lock_ends_with_its_process(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Conflict):
            lock_again(tmp_path)
        holder.kill()
    with dispatcher_lock(tmp_path):
        pass
