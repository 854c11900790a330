"""Terminals that are stopped for longer than a lease, while other processes use the database."""

import json
import re
import signal
import sqlite3
from asyncio.subprocess import Process
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from internal.agent.domain.events.envelope import rfc3339
from tests.support.cli_environment import LARKSPUR, PROCESS, CliEnvironment, open_command_line
from tests.support.scripted_model import Call, Reply, Rules, When
from tests.support.terminal import TerminalProcess, start_terminal
from tests.support.terminal_session import open_terminal

SHORT_LEASE = {"LARKSPUR_DISPATCH__LEASE_SECONDS": "1"}
ASK = Call("request_user", {"question": "Which colour?", "options": ["red", "green"]})


def held_and_other() -> Rules:
    return Rules(
        [
            Reply(text="quick", when=When(last_user="another")),
            Reply(text="still here", hold="go", after_pieces=0),
        ]
    )


@contextmanager
def nobody_writes(cli: CliEnvironment) -> Iterator[None]:
    """Hold the lock of the database: a process stopped with it would lock out all others."""
    with closing(sqlite3.connect(cli.home / "larkspur.db", isolation_level=None)) as database:
        database.execute("begin immediate")
        yield
        database.execute("rollback")


def stop(process: Process) -> None:
    """Stop a process, and return when it is stopped."""
    process.send_signal(signal.SIGSTOP)
    status = Path(f"/proc/{process.pid}/stat")
    while status.read_text().rpartition(")")[2].split()[0] != "T":
        pass


def until_lease_ends(cli: CliEnvironment) -> None:
    """Wait until the lease of the stopped terminal has ended, in at most a second."""
    with closing(sqlite3.connect(cli.home / "larkspur.db")) as database:
        lease = "9999"
        while lease >= rfc3339(datetime.now(UTC)):
            ((lease,),) = database.execute("select max(lease_until) from runs").fetchall()


@pytest.mark.slow
async def test_task_of_a_stopped_process_continues_with_it(
    home: Path, environ: dict[str, str]
) -> None:
    environ = {**environ, **SHORT_LEASE}
    async with open_command_line("process", home, environ, held_and_other()) as cli:
        process = await cli.start("-p", "wait", "--output-format", "json")
        await cli.model.until_open(1)
        with nobody_writes(cli):
            stop(process)
        until_lease_ends(cli)
        other = await cli.shot("another", "--local")  # it recovers what dead processes left
        await cli.serve()  # as this does
        process.send_signal(signal.SIGCONT)
        cli.model.release("go")
        out, err = await process.communicate()
        result = json.loads(out)
        stored = await cli.task(result["task_id"])
    assert (other.out, other.err) == (b"quick\n", "")
    assert (process.returncode, result["text"], err) == (0, "still here", b"")
    assert stored["status"] == "completed"
    assert len(cli.model.requests) == 2, "the model was asked once for each task"


@pytest.mark.slow
async def test_task_of_a_killed_process_is_recovered_within_its_lease(
    home: Path, environ: dict[str, str]
) -> None:
    async with open_command_line("process", home, environ, held_and_other()) as cli:
        process = await cli.start("-p", "wait")
        await cli.model.until_open(1)
        process.kill()
        await process.wait()
        other = await cli.shot("another")
    assert "A task was interrupted because its terminal was closed." in other.err


async def shell_prompt(tty: TerminalProcess) -> None:
    await tty.wait_until(lambda: tty.screen.rows[tty.screen.cursor.y] == "sh>")


@pytest.mark.slow
@PROCESS
async def test_session_continues_its_task_after_ctrl_z_and_fg(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    environ = {**environ, **SHORT_LEASE}
    async with open_command_line(way, home, environ, held_and_other()) as cli:
        shell = {**cli.environ, "PS1": "sh> ", "BASH_SILENCE_DEPRECATION_WARNING": "1"}
        command = ["bash", "--norc", "--noprofile", "-i"]
        async with start_terminal(command, shell, cli.folder) as tty:
            await shell_prompt(tty)
            tty.type(f"stty -a | md5sum; {LARKSPUR}\r")
            await tty.wait_for("larkspur 0.", "/ commands")
            tty.type("wait\r")
            await cli.model.until_open(1)
            raw = tty.modes()
            with nobody_writes(cli):
                tty.type("\x1a")
                await tty.wait_for("Stopped")
            await shell_prompt(tty)
            tty.type("stty -a | md5sum\r")
            sums = re.compile(r"^[0-9a-f]{32}", re.MULTILINE)
            await tty.wait_until(lambda: len(sums.findall(tty.screen.text)) == 2)
            assert len(set(sums.findall(tty.screen.text))) == 1, "the shell has its own settings"
            if way == "process":
                until_lease_ends(cli)
                await cli.serve()
            tty.type("fg\r")
            await tty.wait_for("esc stop")
            await tty.wait_until(lambda: tty.modes() == raw)
            cli.model.release("go")
            await tty.wait_for("● still here", " out")
            tty.type("another\r")
            await tty.wait_until(lambda: tty.screen.text.count(" out") == 2)
            assert "● quick" in tty.screen.text
            tty.type("\x04")
            await shell_prompt(tty)
        process = await cli.start("tasks", "--json")
        out, _ = await process.communicate()
    assert [task["status"] for task in json.loads(out)] == ["completed", "completed"]
    assert len(cli.model.requests) == 2


@pytest.mark.slow
async def test_session_says_that_another_process_continues_its_task(
    home: Path, environ: dict[str, str]
) -> None:
    script = Rules(
        [
            Reply(text="quick", when=When(last_user="another")),
            Reply(text="painted green", hold="go", after_pieces=0, when=When(last_result="green")),
            Reply(calls=[ASK]),
        ]
    )
    environ = {**environ, **SHORT_LEASE}
    async with open_terminal("process", home, environ, script) as repl:
        await repl.send("paint")
        await repl.tty.wait_for("Which colour?", "waiting for you")
        repl.tty.process.send_signal(signal.SIGSTOP)
        until_lease_ends(repl.place)
        await repl.place.serve()
        with closing(sqlite3.connect(home / "larkspur.db")) as database:
            ((question_id,),) = database.execute("select id from questions").fetchall()
        answering = await repl.place.start("answer", question_id, "green")
        assert await answering.wait() == 0
        await repl.place.model.until_open(1)
        repl.tty.process.send_signal(signal.SIGCONT)
        await repl.tty.wait_for("Another process continues the task", "larkspur watch")
        repl.place.model.release("go")
        await repl.tty.wait_for("● painted green")
        await repl.send("another")
        await repl.tty.wait_until(lambda: repl.tty.screen.text.count(" out") == 2)
        assert "● quick" in repl.tty.screen.text
        repl.tty.type("\x04")
        assert await repl.exit_restored() == 0
