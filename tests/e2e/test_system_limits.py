"""A machine without free file descriptors or disk space, with real processes."""

import asyncio
import os
import resource
import subprocess
from collections.abc import Generator
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_app import open_agent
from tests.support.anthropic_server import Call, Reply, Rules, When
from tests.support.gateway_process import LARKSPUR, running_gateway
from tests.support.http_client import HttpClient

NO_DESCRIPTORS = "The machine has no free file descriptors."


def start_gateway(
    environ: dict[str, str], folder: Path, limit: str = ":"
) -> subprocess.CompletedProcess[bytes]:
    """Run `larkspur serve` after a shell command that sets a limit, until it exits.

    Python would leave truncated byte code behind, which breaks every later start.
    """
    return subprocess.run(
        ["sh", "-c", f'{limit}; exec "{LARKSPUR}" serve --port 0'],
        env=environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        cwd=folder,
        capture_output=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("limit", [8, 20, 40])
@pytest.mark.first_rows(1)
def test_the_start_without_free_descriptors_fails_with_a_sentence(
    environ: dict[str, str], tmp_path: Path, limit: int
) -> None:
    done = start_gateway(environ, tmp_path, f"ulimit -n {limit}")
    assert done.returncode == 1
    assert NO_DESCRIPTORS in done.stderr.decode()
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("blocks", [0, 1, 16, 400])
@pytest.mark.first_rows(1)
def test_the_start_without_space_for_its_files_fails_with_a_sentence(
    environ: dict[str, str], tmp_path: Path, blocks: int
) -> None:
    done = start_gateway(environ, tmp_path, f"ulimit -f {blocks}")
    assert done.returncode in {1, 3}
    assert b"Traceback" not in done.stderr
    assert done.stderr.decode().splitlines()[-1].endswith(".")


@pytest.mark.slow
def test_an_address_that_cannot_be_written_fails_the_start_with_a_sentence(
    environ: dict[str, str], home: Path, tmp_path: Path
) -> None:
    (home / "gateway.json").mkdir(mode=0o700)
    done = start_gateway(environ, tmp_path)
    assert done.returncode == 3
    assert b"gateway.json cannot be written" in done.stderr
    assert b"Traceback" not in done.stderr


async def health(client: HttpClient) -> dict[str, Any]:
    return dict((await client.get("/health")).json())


@pytest.mark.slow
async def test_a_gateway_recovers_when_descriptors_are_free_again(
    environ: dict[str, str], home: Path
) -> None:
    async with running_gateway(environ, home) as gateway:
        # a gateway that has just started still reads modules and files
        ended = await gateway.client.post("/api/tasks?wait=60", {"task": "hello"})
        assert ended.json()["run"]["status"] == "completed"
        pid = gateway.process.pid
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (16, limits[1]))  # fewer than are open
        async with asyncio.timeout(60):
            while NO_DESCRIPTORS not in (line := (await gateway.log.readline()).decode()):
                assert line, "the gateway has ended"
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
            while "works again" not in (line := (await gateway.log.readline()).decode()):
                assert line, "the gateway has ended"
            assert (await health(gateway.client))["status"] == "ok"
    assert gateway.process.returncode == 0
    assert limits[0] > 1024


@pytest.mark.slow
async def test_silent_connections_leave_descriptors_to_everything_else(
    environ: dict[str, str], home: Path
) -> None:
    limited = ("sh", "-c", f'ulimit -Sn 100; ulimit -Hn 200; exec "{LARKSPUR}" serve --port 0')
    async with running_gateway(environ, home, *limited) as gateway, AsyncExitStack() as opened:
        reads = []
        for _ in range(400):
            reader, writer = await gateway.client.connect()
            opened.callback(writer.close)
            reads.append(asyncio.create_task(is_closed(reader)))
        assert (await health(gateway.client))["status"] == "ok"
        closed = sum(read.done() for read in reads)
        assert closed < 400 - 50, "the soft limit was raised, else only 50 would be open"
        async with asyncio.timeout(30):
            assert all([await read for read in reads])
        assert (await gateway.client.get("/api/me")).status == 200


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Return True when the other side has closed a connection."""
    with suppress(ConnectionError):
        return await reader.read(1) == b""
    return True


@contextmanager
def free_descriptors(count: int) -> Generator[None]:
    """Leave this process a number of free file descriptors while the block runs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as opened:
        highest = max(int(each.name) for each in Path("/proc/self/fd").iterdir())
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
        opened.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        held: list[int] = []
        try:
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
                opened.callback(os.close, held[-1])
        except OSError:
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1 + count, hard))
        yield


async def test_a_tool_without_descriptors_says_so_and_the_run_continues(home: Path) -> None:
    rules = Rules(
        [
            Reply(text="it works again", when=When(last_result="again")),
            Reply(
                calls=[Call("shell", {"command": "echo again"})],
                when=When(last_result=NO_DESCRIPTORS),
                hold="later",
            ),
            Reply(calls=[Call("shell", {"command": "echo first"})], hold="now"),
        ]
    )
    async with open_agent(home, rules, {"LARKSPUR_AGENT__GATES": "off"}) as here:
        made = await here.submit("say something")
        await here.model.until_open(1)
        with free_descriptors(1):
            here.model.release("now")
            events = await here.until(
                made.session_id, lambda each: each["event"] == "workflow.tool.completed"
            )
        assert NO_DESCRIPTORS in events[-1]["payload"]["error"]
        here.model.release("later")
        assert (await here.end_of(made))[-1]["payload"]["final_answer"] == "it works again"
