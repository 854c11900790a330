"""A machine without free file descriptors or disk space, with real processes."""

import asyncio
import os
import resource
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_app import core
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
def test_the_start_without_free_descriptors_fails_with_a_sentence(
    environ: dict[str, str], tmp_path: Path, limit: int
) -> None:
    done = start_gateway(environ, tmp_path, f"ulimit -n {limit}")
    assert done.returncode == 1
    assert NO_DESCRIPTORS in done.stderr.decode()
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("blocks", [0, 1, 16, 400])
def test_the_start_without_space_for_its_files_fails_with_a_sentence(
    environ: dict[str, str], tmp_path: Path, blocks: int
) -> None:
    done = start_gateway(environ, tmp_path, f"ulimit -f {blocks}")
    assert done.returncode in {1, 3}
    assert b"Traceback" not in done.stderr
    assert done.stderr.decode().splitlines()[-1].endswith(".")


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


async def test_a_gateway_recovers_when_descriptors_are_free_again(
    environ: dict[str, str], home: Path
) -> None:
    limited = ("sh", "-c", f'ulimit -n 64; exec "{LARKSPUR}" serve --port 0')
    async with running_gateway(environ, home, *limited) as gateway:
        client = gateway.client
        async with asyncio.timeout(60):
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):  # noqa: PT012 - until it refuses
                opened = []
                while True:
                    reader, writer = await client.connect()
                    opened.append(writer)
                    writer.write(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
                    await reader.readuntil(b"\r\n\r\n")
            while NO_DESCRIPTORS not in (await gateway.log.readline()).decode():
                pass
            for writer in opened:
                writer.close()
            while "works again" not in (await gateway.log.readline()).decode():
                pass
            assert (await health(client))["status"] == "ok"
    assert gateway.process.returncode == 0


@contextmanager
def free_descriptors(count: int) -> Generator[None]:
    """Leave this process so many free file descriptors while the block runs."""
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
    async with core(home, rules, {"LARKSPUR_AGENT__GATES": "off"}) as here:
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
