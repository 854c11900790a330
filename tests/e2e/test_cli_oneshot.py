"""One shot as a process, in both ways: through a running gateway and in its own process."""

import asyncio
import base64
import fcntl
import http.client
import json
import os
import pty
import re
import signal
import sys
import termios
from array import array
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from internal.channels.cli.transports.sse import StreamFrame, StreamParser
from internal.config import home as home_folder
from tests.support.anthropic_server import ScriptedAnthropic
from tests.support.scripted_model import Call, Fault, Reply, Rules, Script

LARKSPUR = Path(sys.executable).with_name("larkspur")
BOTH_WAYS = pytest.mark.parametrize("way", ["gateway", "process"])
SLEEP = Call("shell", {"command": "touch started; exec sleep 1000"})


class Result:
    """What a finished command left."""

    def __init__(self, code: int | None, out: bytes, err: bytes) -> None:
        self.code, self.out, self.err = code, out, err.decode()

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


class Place:
    """A data folder with a scripted model, and perhaps a gateway."""

    def __init__(self, home: Path, environ: dict[str, str], model: ScriptedAnthropic) -> None:
        self.home, self.environ, self.model = home, environ, model
        self.folder = home.parent / "work"
        self.folder.mkdir()
        self.gateways: list[Process] = []

    async def serve(self) -> Process:
        """Start a gateway and return when it is ready."""
        gateway = await self.start("serve", "--port", "0", stdout=DEVNULL)
        self.gateways.append(gateway)
        await until_line(gateway, gateway.stderr, b" is at http")
        return gateway

    async def start(
        self, *argv: str, stdin: int = DEVNULL, stdout: int = PIPE, stderr: int = PIPE
    ) -> Process:
        return await asyncio.create_subprocess_exec(
            LARKSPUR,
            *argv,
            env=self.environ,
            cwd=self.folder,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )

    async def shot(self, *argv: str, stdin: bytes | None = None) -> Result:
        """Run a one shot to its end."""
        process = await self.start("-p", *argv, stdin=DEVNULL if stdin is None else PIPE)
        out, err = await process.communicate(stdin)
        return Result(process.returncode, out, err)

    async def stream(self, session_id: str) -> list[StreamFrame]:
        """Return what the gateway replays of a session, byte for byte."""
        if not self.gateways:
            await self.serve()
        return await asyncio.to_thread(self._stream, session_id)

    async def task(self, task_id: str) -> dict[str, Any]:
        """Return a task as it is stored."""
        if not self.gateways:
            await self.serve()
        return await asyncio.to_thread(self._get, f"/api/tasks/{task_id}")

    async def only_task(self) -> dict[str, Any]:
        if not self.gateways:
            await self.serve()
        (task,) = (await asyncio.to_thread(self._get, "/api/tasks"))["tasks"]
        return await self.task(task["task_id"])

    def _stream(self, session_id: str) -> list[StreamFrame]:
        parser = StreamParser()
        frames: list[StreamFrame] = []
        with closing(self._connection()) as connection:
            connection.request("GET", f"/api/sse?session_id={session_id}", headers=self._headers())
            response = connection.getresponse()
            while not any(frame.event == "replay.done" for frame in frames):
                frames += parser.feed(response.read1(65_536))
        return [frame for frame in frames if frame.id is not None]

    def _get(self, path: str) -> dict[str, Any]:
        with closing(self._connection()) as connection:
            connection.request("GET", path, headers=self._headers())
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
            return answer

    def _connection(self) -> http.client.HTTPConnection:
        address = home_folder.find_gateway(self.home)
        assert address is not None
        return http.client.HTTPConnection(address.host, address.port, timeout=30)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {home_folder.read_token(self.home)}"}


@asynccontextmanager
async def place(
    way: str, home: Path, environ: dict[str, str], script: Script
) -> AsyncGenerator[Place]:
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(ScriptedAnthropic(script))
        ours = {
            **environ,
            "LARKSPUR_LLM__PROVIDER": "anthropic",
            "LARKSPUR_LLM__MODEL": "claude-x",
            "LARKSPUR_AGENT__GATES": "off",
            "ANTHROPIC_BASE_URL": model.base_url,
            "ANTHROPIC_API_KEY": "x",
        }
        there = Place(home, ours, model)
        try:
            if way == "gateway":
                await there.serve()
            yield there
        finally:
            for gateway in there.gateways:
                if gateway.returncode is None:
                    gateway.send_signal(signal.SIGCONT)
                    gateway.kill()
                await gateway.communicate()


def answers(*texts: str) -> Sequence[Reply]:
    return [Reply(text=text) for text in texts]


@BOTH_WAYS
async def test_text_is_the_answer_alone(way: str, home: Path, environ: dict[str, str]) -> None:
    async with place(way, home, environ, [Reply(text="zwölf 点", pieces=3)]) as there:
        result = await there.shot("how many?")
    assert (result.code, result.out.decode(), result.err) == (0, "zwölf 点\n", "")


@BOTH_WAYS
async def test_a_long_answer_is_whole(way: str, home: Path, environ: dict[str, str]) -> None:
    long = "点 and word " * 20_000
    async with place(way, home, environ, answers(long)) as there:
        result = await there.shot("write a book")
    assert result.out.decode() == long.strip() + "\n"


@BOTH_WAYS
async def test_json_says_what_became_of_it(way: str, home: Path, environ: dict[str, str]) -> None:
    async with place(way, home, environ, answers("done")) as there:
        result = await there.shot("go", "--output-format", "json")
        (told,) = result.rows
        stored = await there.task(told["task_id"])
    assert (told["status"], told["stop_reason"], told["text"]) == (
        "completed",
        "final_answer",
        "done",
    )
    assert (told["exit_code"], told["denied"], result.err) == (0, [], "")
    assert told["usage"] == stored["run"]["usage"]
    assert told["run_id"] == stored["run"]["run_id"]


@BOTH_WAYS
async def test_the_rows_are_those_of_the_stream(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(text="one", calls=[Call("list_dir", {})]), Reply(text="a b c", pieces=5)]
    async with place(way, home, environ, script) as there:
        result = await there.shot("look", "--output-format", "stream-json")
        first, *lines, last = result.out.splitlines()
        init, end = json.loads(first), json.loads(last)
        frames = await there.stream(init["session_id"])
    assert (init["type"], end["type"], result.code) == ("init", "result", 0)
    assert (init["model"], init["workspace"]) == ("claude-x", str(there.folder))
    durable = [line for line in lines if line.startswith(b'{"id":')]
    assert durable == [b'{"id":"%s","event":%s}' % (f.id.encode(), f.data) for f in frames if f.id]
    pieces = [row["event"]["payload"] for row in result.rows[1:-1] if "id" not in row]
    said = [piece["text"] for piece in pieces if piece["node_id"] == "iter:2:say"]
    assert "".join(said) == end["text"] == "a b c"


@BOTH_WAYS
async def test_a_session_goes_on(way: str, home: Path, environ: dict[str, str]) -> None:
    async with place(way, home, environ, answers("first", "second", "third")) as there:
        one = await there.shot("A?", "--output-format", "json", "--session-name", "my  talk")
        two = await there.shot("B?", "-c", "--output-format", "stream-json")
        session = one.rows[0]["session_id"]
        three = await there.shot("C?", "-r", session, "--output-format", "json")
        listed = await there.shot("", "-r")
    assert [two.rows[0]["session_id"], three.rows[0]["session_id"]] == [session, session]
    assert {row["event"]["run_id"] for row in two.rows[1:-1]} == {two.rows[0]["run_id"]}
    said = json.dumps(there.model.requests[-1]["messages"])
    places = [said.index(word) for word in ("A?", "first", "B?", "second", "C?")]
    assert places == sorted(places)
    assert (listed.code, listed.out) == (2, b"")
    assert re.search(rf"{session}  \S+  my talk\n", listed.err)


@BOTH_WAYS
async def test_what_is_piped_and_attached_goes_along(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with place(way, home, environ, answers("seen", "read")) as there:
        picture = base64.b64decode("iVBORw0KGgo=")
        (there.folder / "p.png").write_bytes(picture)
        (there.folder / "n.txt").write_text("the note")
        seen = await there.shot("compare", "-f", "p.png", "n.txt", stdin=b"piped \xff words\n")
        read = await there.shot(stdin=b"only this")
    assert (seen.out, read.out) == (b"seen\n", b"read\n")
    blocks = there.model.requests[0]["messages"][0]["content"]
    assert blocks[0]["type"] == "image"
    words = "".join(block["text"] for block in blocks if block["type"] == "text")
    assert "the note" in words
    assert "compare\n\n<stdin>\npiped \ufffd words\n</stdin>" in words
    assert "only this" in json.dumps(there.model.requests[1]["messages"])


@BOTH_WAYS
async def test_a_denied_action_says_the_rule_that_allows_it(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [
        Reply(calls=[Call("shell", {"command": "touch made"})]),
        Reply(text="tried"),
        Reply(calls=[Call("shell", {"command": "touch made"})]),
        Reply(text="made it"),
    ]
    async with place(way, home, environ, script) as there:
        denied = await there.shot("touch it")
        found = re.search(r"--allow '(.*)'\n", denied.err)
        assert found, denied.err
        made = there.folder / "made"
        assert (denied.code, denied.out, made.exists()) == (4, b"tried\n", False)
        allowed = await there.shot("touch it", "--allow", found[1])
    assert (allowed.code, allowed.out, allowed.err) == (0, b"made it\n", "")
    assert made.exists()


@BOTH_WAYS
async def test_a_limit_ends_with_5(way: str, home: Path, environ: dict[str, str]) -> None:
    script = [Reply(calls=[Call("list_dir", {})]), Reply(text="what there is")]
    async with place(way, home, environ, script) as there:
        result = await there.shot("go on for ever", "--max-iterations", "1")
    assert (result.code, result.out) == (5, b"what there is\n")
    assert "limit of iterations" in result.err


@BOTH_WAYS
async def test_a_failed_run_ends_with_1_and_its_reason(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    fault = Fault("status", status=400, message="no such thing")
    async with place(way, home, environ, [Reply(fault=fault)]) as there:
        result = await there.shot("go")
    assert (result.code, result.out) == (1, b"")
    assert "no such thing" in result.err
    assert "Traceback" not in result.err


@BOTH_WAYS
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
async def test_a_signal_stores_the_end_of_the_run(
    way: str, number: signal.Signals, code: int, home: Path, environ: dict[str, str]
) -> None:
    async with place(way, home, environ, [Reply(hang=True)]) as there:
        process = await there.start("-p", "wait", "--output-format", "json")
        await there.model.until_asked(1)
        process.send_signal(number)
        out, err = await process.communicate()
        stored = await there.only_task()
    assert (process.returncode, json.loads(out)["status"]) == (code, "cancelled")
    assert (stored["status"], stored["stop_reason"]) == ("cancelled", "user_stop")
    assert b"Traceback" not in err


@BOTH_WAYS
async def test_a_tool_that_hangs_ends_with_its_run(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with place(way, home, environ, [Reply(calls=[SLEEP])]) as there:
        process = await there.start(
            "-p", "sleep", "--permission-mode", "full", "--output-format", "stream-json"
        )
        await until_line(process, process.stdout, b"workflow.tool.started")
        process.send_signal(signal.SIGINT)
        out, _ = await process.communicate()
        stored = await there.only_task()
    assert process.returncode == 130
    assert json.loads(out.splitlines()[-1])["status"] == "cancelled"
    assert stored["status"] == "cancelled"


async def test_the_second_interrupt_leaves_while_the_gateway_hangs(
    home: Path, environ: dict[str, str]
) -> None:
    async with place("gateway", home, environ, [Reply(hang=True)]) as there:
        process = await there.start("-p", "wait")
        await there.model.until_asked(1)
        there.gateways[0].send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        await until_line(process, process.stderr, b"Stopping")
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130


async def test_the_second_interrupt_leaves_while_the_reader_hangs(
    home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(text="w " * 200_000, pieces=200), Reply(text="")]
    async with place("process", home, environ, script) as there:
        reader, writer = os.pipe()
        process = await there.start("-p", "flood", "--output-format", "stream-json", stdout=writer)
        os.close(writer)
        await there.model.until_asked(1)
        await asyncio.to_thread(wait_until_full, reader)
        process.send_signal(signal.SIGINT)
        await until_line(process, process.stderr, b"Stopping")
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130
        os.close(reader)


@BOTH_WAYS
async def test_a_reader_that_leaves_stops_the_run_quietly(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(text="a b c d", pieces=4, hold="more", after_pieces=2, packets="each")]
    async with place(way, home, environ, script) as there:
        process = await there.start("-p", "talk", "--output-format", "stream-json")
        await until_line(process, process.stdout, b"output.delta")
        assert process.stdout is not None
        process.stdout._transport.close()  # type: ignore[attr-defined] # the only way to stop reading
        there.model.release("more")
        assert process.stderr is not None
        assert await process.stderr.read() == b""
        assert await process.wait() == 141


async def test_a_full_disk_is_one_sentence(home: Path, environ: dict[str, str]) -> None:
    async with place("process", home, environ, answers("much")) as there:
        full = os.open("/dev/full", os.O_WRONLY)
        process = await there.start("-p", "x", stdout=full)
        os.close(full)
        _, err = await process.communicate()
    assert process.returncode == 1
    assert err == b"The output cannot be written: No space left on device.\n"


@BOTH_WAYS
async def test_nothing_of_an_answer_drives_a_terminal(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    wild = "\x1b]0;title\x07 \u202egnp.exe\u202c \x9b31m ok\tyes"
    async with place(way, home, environ, answers(wild, wild)) as there:
        master, slave = pty.openpty()
        process = await there.start("-p", "x", stdout=slave)
        os.close(slave)
        await process.wait()
        shown = os.read(master, 65_536).decode()
        os.close(master)
        piped = await there.shot("x")
    assert "ok\tyes" in shown
    assert set(shown.replace("\r\n", "\n")).isdisjoint("\x1b\x07\u202e\u202c\x9b")
    assert piped.out.decode() == wild + "\n"


async def test_a_run_goes_on_when_its_gateway_comes_back(
    home: Path, environ: dict[str, str]
) -> None:
    script = Rules([Reply(text="still here", hold="go")])
    async with place("gateway", home, environ, script) as there:
        process = await there.start("-p", "wait", "--output-format", "stream-json")
        await there.model.until_asked(1)
        there.gateways[0].kill()
        await there.gateways[0].wait()
        await there.serve()
        there.model.release("go")
        out, _ = await process.communicate()
        rows = [json.loads(line) for line in out.splitlines()]
    assert (process.returncode, rows[-1]["text"]) == (0, "still here")
    seqs = [row["event"]["seq"] for row in rows if "id" in row]
    assert sorted({*seqs}) == seqs


async def test_another_provider_works_in_this_process(home: Path, environ: dict[str, str]) -> None:
    async with place("gateway", home, environ, answers("from the gateway")) as there:
        there.environ |= {
            "LARKSPUR_LLM__PROVIDER": "offline",
            "LARKSPUR_LLM__MODEL": "offline-demo",
        }
        other = await there.shot("what is 6*7")
        there.environ |= {"LARKSPUR_LLM__PROVIDER": "anthropic", "LARKSPUR_LLM__MODEL": "claude-x"}
        local = await there.shot("x", "--local", "--output-format", "stream-json")
    assert "working in this process" in other.err
    assert b"42" in other.out
    assert (local.rows[0]["via"], local.rows[-1]["text"]) == ("process", "from the gateway")


async def test_a_detached_task_is_left_to_the_gateway(home: Path, environ: dict[str, str]) -> None:
    async with place("gateway", home, environ, [Reply(hang=True)]) as there:
        result = await there.shot("later", "--detach")
        stored = await there.task(result.out.decode().strip())
    assert (result.code, result.err) == (0, "")
    assert stored["task"] == "later"


async def test_a_wrong_address_or_token_ends_with_3(home: Path, environ: dict[str, str]) -> None:
    async with place("gateway", home, environ, answers("never")) as there:
        address = home_folder.find_gateway(home)
        assert address is not None
        closed = await there.shot("x", "--server", "http://127.0.0.1:1")
        named = await there.shot("x", "--server", address.url)
        (home / "token").write_text("w" * 64)
        wrong = await there.shot("x")
    assert (closed.code, wrong.code) == (3, 3)
    assert "No gateway answers" in closed.err
    assert (named.code, named.out) == (0, b"never\n")
    assert wrong.out == b""


async def test_an_attached_shot_imports_the_standard_library_alone(
    home: Path, environ: dict[str, str]
) -> None:
    async with place("gateway", home, environ, answers("light")) as there:
        program = (
            "import sys; from larkspur.main import main; sys.argv = ['larkspur', '-p', 'x'];"
            "code = main(); sys.stderr.write(' '.join(sys.modules)); sys.exit(code)"
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            program,
            env=there.environ,
            cwd=there.folder,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )
        out, err = await process.communicate()
    assert out == b"light\n"
    loaded = {name.partition(".")[0] for name in err.decode().split()}
    # what the virtual environment itself loads at every start does not count
    assert loaded - {*sys.stdlib_module_names, "__main__"} <= {"larkspur", "internal", *SITE}
    assert loaded.isdisjoint({"asyncio", "dataclasses", "msgspec", "pydantic", "sqlite3"})
    assert not [name for name in err.decode().split() if name.startswith("internal.agent")]


SITE = {"_virtualenv", "sitecustomize", "usercustomize", "_distutils_hack"}


async def until_line(process: Process, reader: asyncio.StreamReader | None, word: bytes) -> None:
    """Read lines until one has the word."""
    assert reader is not None
    while word not in (line := await reader.readline()):
        if not line:
            told = b"" if process.stderr is None else await process.stderr.read()
            raise AssertionError(f"it ended before it said {word!r}: {told.decode()}")


def wait_until_full(reader: int) -> None:
    """Wait until a pipe holds all that it can: its writer hangs."""
    size = fcntl.fcntl(reader, fcntl.F_GETPIPE_SZ)
    held = array("i", [0])
    while held[0] < size - 4096:  # a page is not always filled to its end
        fcntl.ioctl(reader, termios.FIONREAD, held)
        os.sched_yield()
