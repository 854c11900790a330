"""Measured processes: their start and their cost."""

import http.client
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.ports import free_port

PYTHON = sys.executable
LARKSPUR = str(Path(PYTHON).with_name("larkspur"))
_PATIENCE_SECONDS = 60.0


def environment(home: Path, **settings: str) -> dict[str, str]:
    """The whole environment of a child. No PYTHONDONTWRITEBYTECODE: it slows every start."""
    ours = os.environ  # noqa: TID251 - only the way to programs is taken from it
    return {
        "PATH": ours["PATH"],
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "LARKSPUR_HOME": str(home),
        "LARKSPUR_SERVER__RATE_LIMIT_PER_MINUTE": "60000000",
        "LARKSPUR_SERVER__RATE_LIMIT_BURST": "1000000",
        "LARKSPUR_SANDBOX__PROVIDER": "native",
        **settings,
    }


def with_model(url: str) -> dict[str, str]:
    """The settings of a gateway that asks a scripted model."""
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "key-for-benches",
        "LARKSPUR_LLM__PROVIDER": "anthropic",
        "LARKSPUR_LLM__MODEL": "claude-x",
        "LARKSPUR_LLM__CONCURRENCY": "64",
    }


@dataclass
class Server:
    """A server in a process of its own. `ready_seconds`: from its start to its first answer."""

    process: subprocess.Popen[bytes]
    port: int
    home: Path
    ready_seconds: float

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def cpu(self) -> float:
        return cpu_of(self.pid)

    @property
    def rss(self) -> float:
        return rss_of(self.pid)

    @property
    def token(self) -> str:
        return (self.home / "token").read_text(encoding="utf-8").strip()


def cpu_of(pid: int) -> float:
    """Return the CPU seconds, user and system, of all threads that a process ever had.

    The kernel's clock of another process, see clock_getcpuclockid(3): its id is made of the pid.
    """
    return time.clock_gettime((~pid << 3) | 2)


def rss_of(pid: int) -> float:
    """Return the resident memory of a process, in MB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None, status
    return int(found[1]) / 1000


@contextmanager
def gateway(
    home: Path, *more: str, program: Sequence[str] = (LARKSPUR,), **settings: str
) -> Generator[Server]:
    """Run `larkspur serve` on its own home folder. `program` replaces the command."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    port = free_port()
    command = [*program, "serve", "--port", str(port), *more]
    with _server(command, port, home, environment(home, **settings)) as server:
        yield server


@contextmanager
def worker(home: Path, **settings: str) -> Generator[int]:
    """Run `larkspur worker` on its own home folder until the end of the block; yield its pid."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    process = subprocess.Popen(
        [LARKSPUR, "worker"], env=environment(home, **settings), stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        said = [process.stderr.readline()]
        while said[-1] and b" works as " not in said[-1]:
            said.append(process.stderr.readline())
        assert said[-1], b"".join(said).decode()
        yield process.pid
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def floor(module: str, home: Path, *arguments: str) -> Generator[Server]:
    """Run one of the bare servers."""
    home.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = [PYTHON, "-m", f"tests.bench.{module}", str(port), *arguments]
    with _server(command, port, home, environment(home)) as server:
        yield server


@contextmanager
def scripted_model() -> Generator[str]:
    """Run the scripted model; gives its address."""
    port = free_port()
    command = [PYTHON, "-m", "tests.bench.model", str(port)]
    with _server(command, port, Path(), environment(Path())) as server:
        yield f"http://127.0.0.1:{server.port}"


@contextmanager
def _server(
    command: Sequence[str], port: int, home: Path, environ: dict[str, str]
) -> Generator[Server]:
    with tempfile.TemporaryFile() as said:
        begun = time.perf_counter()
        process = subprocess.Popen(command, env=environ, stdout=said, stderr=said)
        try:
            if not _healthy(process, port):
                said.seek(0)
                raise AssertionError(f"{command} does not answer: {said.read().decode()}")
            yield Server(process, port, home, time.perf_counter() - begun)
        finally:
            process.terminate()
            process.wait()


def _healthy(process: subprocess.Popen[bytes], port: int) -> bool:
    """Wait for the first answer; False when the process ended, or took too long."""
    deadline = time.perf_counter() + _PATIENCE_SECONDS
    while process.poll() is None and time.perf_counter() < deadline:
        try:
            return get(port, "/health") in {200, 503}  # 503: no worker yet
        except OSError:
            time.sleep(0.002)  # not there yet: asked again until it is
    return False


def get(port: int, path: str) -> int:
    """Return the status of a GET."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def seconds_of(command: Sequence[str], environ: dict[str, str]) -> float:
    """Return the wall time of a process that must succeed."""
    begun = time.perf_counter()
    done = subprocess.run(command, env=environ, capture_output=True, check=False)
    seconds = time.perf_counter() - begun
    assert done.returncode == 0, done
    return seconds
