"""One-shot tasks as processes, through a running gateway and in their own process."""

import asyncio
import fcntl
import json
import os
import pty
import re
import signal
import sys
import termios
from array import array
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

import pytest

from internal.config import home as home_folder
from tests.support import documents
from tests.support.cli_environment import (
    BOTH_TRANSPORTS,
    GATEWAY,
    PROCESS,
    open_command_line,
    text_replies,
    until_line,
)
from tests.support.scripted_model import Call, Fault, Reply, Rules

SLEEP = Call("shell", {"command": "touch started; exec sleep 1000"})


@BOTH_TRANSPORTS
async def test_text_output_is_only_the_answer(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with open_command_line(way, home, environ, [Reply(text="zwölf 点", pieces=3)]) as cli:
        result = await cli.shot("how many?")
    assert (result.code, result.out.decode(), result.err) == (0, "zwölf 点\n", "")


@BOTH_TRANSPORTS
@pytest.mark.slow
async def test_long_answer_is_complete(way: str, home: Path, environ: dict[str, str]) -> None:
    long = "点 and word " * 20_000
    async with open_command_line(way, home, environ, text_replies(long)) as cli:
        result = await cli.shot("write a book")
    assert result.out.decode() == long.strip() + "\n"


@GATEWAY
async def test_json_output_has_the_result(way: str, home: Path, environ: dict[str, str]) -> None:
    async with open_command_line(way, home, environ, text_replies("done")) as cli:
        result = await cli.shot("go", "--output-format", "json")
        (told,) = result.rows
        stored = await cli.task(told["task_id"])
    assert (told["status"], told["stop_reason"], told["text"]) == (
        "completed",
        "final_answer",
        "done",
    )
    assert (told["exit_code"], told["denied"], result.err) == (0, [], "")
    assert told["usage"] == stored["run"]["usage"]
    assert told["run_id"] == stored["run"]["run_id"]


@PROCESS
@pytest.mark.slow
async def test_stream_json_has_the_bytes_of_the_event_stream(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(text="one", calls=[Call("list_dir", {})]), Reply(text="a b c", pieces=5)]
    async with open_command_line(way, home, environ, script) as cli:
        result = await cli.shot("look", "--output-format", "stream-json")
        first, *lines, last = result.out.splitlines()
        init, end = json.loads(first), json.loads(last)
        frames = await cli.stream(init["session_id"])
    assert (init["type"], end["type"], result.code) == ("init", "result", 0)
    assert (init["model"], init["workspace"]) == ("claude-x", str(cli.folder))
    durable = [line for line in lines if line.startswith(b'{"id":')]
    assert durable == [b'{"id":"%s","event":%s}' % (f.id.encode(), f.data) for f in frames if f.id]
    pieces = [row["event"]["payload"] for row in result.rows[1:-1] if "id" not in row]
    said = [piece["text"] for piece in pieces if piece["node_id"] == "iter:2:say"]
    assert "".join(said) == end["text"] == "a b c"


@GATEWAY
@pytest.mark.slow
async def test_session_is_continued(way: str, home: Path, environ: dict[str, str]) -> None:
    async with open_command_line(
        way, home, environ, text_replies("first", "second", "third")
    ) as cli:
        one = await cli.shot("A?", "--output-format", "json", "--session-name", "my  talk")
        two = await cli.shot("B?", "-c", "--output-format", "stream-json")
        session = one.rows[0]["session_id"]
        three = await cli.shot("C?", "-r", session, "--output-format", "json")
        listed = await cli.shot("", "-r")
    assert [two.rows[0]["session_id"], three.rows[0]["session_id"]] == [session, session]
    assert {row["event"]["run_id"] for row in two.rows[1:-1]} == {two.rows[0]["run_id"]}
    said = json.dumps(cli.model.requests[-1]["messages"])
    places = [said.index(word) for word in ("A?", "first", "B?", "second", "C?")]
    assert places == sorted(places)
    assert (listed.code, listed.out) == (2, b"")
    assert re.search(rf"{session}  \S+ \S+  my talk\n", listed.err)


@PROCESS
@pytest.mark.slow
async def test_standard_input_and_files_are_part_of_the_task(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with open_command_line(way, home, environ, text_replies("seen", "read")) as cli:
        picture = documents.picture("PNG")
        (cli.folder / "p.png").write_bytes(picture)
        (cli.folder / "n.txt").write_text("the note")
        seen = await cli.shot("compare", "-f", "p.png", "n.txt", stdin=b"piped \xff words\n")
        read = await cli.shot(stdin=b"only this")
    assert (seen.out, read.out) == (b"seen\n", b"read\n")
    blocks = cli.model.requests[0]["messages"][-1]["content"]
    assert blocks[0]["type"] == "image_url"
    words = "".join(block["text"] for block in blocks if block["type"] == "text")
    assert "the note" in words
    # A single byte that is not UTF-8 is guessed, and the model is told so.
    assert "compare\n\n<stdin>\n[Encoding: " in words
    assert re.search(r"which is a guess: .*\]\npiped . words\n</stdin>", words)
    assert "only this" in json.dumps(cli.model.requests[1]["messages"])


@GATEWAY
async def test_denied_action_names_the_rule_that_allows_it(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [
        Reply(calls=[Call("shell", {"command": "touch made"})]),
        Reply(text="tried"),
        Reply(calls=[Call("shell", {"command": "touch made"})]),
        Reply(text="made it"),
    ]
    async with open_command_line(way, home, environ, script) as cli:
        denied = await cli.shot("touch it")
        found = re.search(r"--allow '(.*)'\n", denied.err)
        assert found, denied.err
        made = cli.folder / "made"
        assert (denied.code, denied.out, made.exists()) == (4, b"tried\n", False)
        allowed = await cli.shot("touch it", "--allow", found[1])
    assert (allowed.code, allowed.out, allowed.err) == (0, b"made it\n", "")
    assert made.exists()


@pytest.mark.slow
@PROCESS
async def test_reached_limit_exits_with_5(way: str, home: Path, environ: dict[str, str]) -> None:
    script = [Reply(calls=[Call("list_dir", {})]), Reply(text="partial answer")]
    async with open_command_line(way, home, environ, script) as cli:
        result = await cli.shot("go on for ever", "--max-iterations", "1")
    assert (result.code, result.out) == (5, b"partial answer\n")
    assert "reached its step limit (agent.max_iterations)" in result.err


@BOTH_TRANSPORTS
@pytest.mark.slow
async def test_cut_answer_exits_with_5(way: str, home: Path, environ: dict[str, str]) -> None:
    script = [Reply(text=f"{n} ", stop_reason="length") for n in range(4)]
    async with open_command_line(way, home, environ, script) as cli:
        result = await cli.shot("count")
    assert (result.code, result.out) == (5, b"0 1 2 3\n")
    assert result.err.startswith("The model reached its output limit, so the answer is incomplete.")


@pytest.mark.slow
@BOTH_TRANSPORTS
async def test_wait_for_an_overloaded_model_is_reported(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    busy = Fault("status", status=429, retry_after=0.1, times=2)
    async with open_command_line(way, home, environ, [Reply(text="ok", fault=busy)]) as cli:
        result = await cli.shot("hi")
    assert (result.code, result.out) == (0, b"ok\n")
    said = r"limits how often it may be asked, retrying in 1 s \(attempt (\d) of \d+\)"
    retries = re.findall(said, result.err)
    assert retries == ["2", "3"]


@PROCESS
@pytest.mark.slow
async def test_refusal_is_asked_once_and_exits_with_1(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with open_command_line(way, home, environ, [Reply(stop_reason="content_filter")]) as cli:
        result = await cli.shot("do harm")
        assert len(cli.model.requests) == 1
    assert (result.code, result.out) == (1, b"")
    assert result.err == "The content filter of the model provider stopped the answer.\n"


@GATEWAY
@pytest.mark.slow
async def test_failed_run_exits_with_1_and_its_reason(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    fault = Fault("status", status=400, message="no such thing")
    async with open_command_line(way, home, environ, [Reply(fault=fault)]) as cli:
        result = await cli.shot("go")
    assert (result.code, result.out) == (1, b"")
    assert "no such thing" in result.err
    assert "Traceback" not in result.err


@BOTH_TRANSPORTS
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow),
    ],
)
async def test_signal_stops_the_run(
    way: str, number: signal.Signals, code: int, home: Path, environ: dict[str, str]
) -> None:
    async with open_command_line(way, home, environ, [Reply(hang=True)]) as cli:
        process = await cli.start("-p", "wait", "--output-format", "json")
        await cli.model.until_asked(1)
        process.send_signal(number)
        out, err = await process.communicate()
        stored = await cli.only_task()
    assert (process.returncode, json.loads(out)["status"]) == (code, "cancelled")
    assert (stored["status"], stored["stop_reason"]) == ("cancelled", "user_stop")
    assert b"Traceback" not in err


@pytest.mark.slow
@BOTH_TRANSPORTS
async def test_hanging_tool_ends_with_its_run(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with open_command_line(way, home, environ, [Reply(calls=[SLEEP])]) as cli:
        process = await cli.start(
            "-p", "sleep", "--permission-mode", "all", "--output-format", "stream-json"
        )
        await until_line(process, process.stdout, b"workflow.tool.started")
        process.send_signal(signal.SIGINT)
        out, _ = await process.communicate()
        stored = await cli.only_task()
    assert process.returncode == 130
    assert json.loads(out.splitlines()[-1])["status"] == "cancelled"
    assert stored["status"] == "cancelled"


@pytest.mark.slow
async def test_second_interrupt_exits_while_the_gateway_hangs(
    home: Path, environ: dict[str, str]
) -> None:
    async with open_command_line("gateway", home, environ, [Reply(hang=True)]) as cli:
        process = await cli.start("-p", "wait")
        await cli.model.until_asked(1)
        cli.gateways[0].send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        await until_line(process, process.stderr, b"Stopping")
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130


@pytest.mark.slow
async def test_second_interrupt_exits_while_the_reader_hangs(
    home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(text="w " * 200_000, pieces=200), Reply(text="")]
    async with open_command_line("process", home, environ, script) as cli:
        reader, writer = os.pipe()
        process = await cli.start("-p", "flood", "--output-format", "stream-json", stdout=writer)
        os.close(writer)
        await cli.model.until_asked(1)
        await asyncio.to_thread(wait_until_full, reader)
        process.send_signal(signal.SIGINT)
        await until_line(process, process.stderr, b"Stopping")
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130
        os.close(reader)


@PROCESS
@pytest.mark.slow
async def test_closed_output_pipe_stops_the_run_without_a_message(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(text="a b c d", pieces=4, hold="more", after_pieces=2, packets="each")]
    async with open_command_line(way, home, environ, script) as cli:
        process = await cli.start("-p", "talk", "--output-format", "stream-json")
        await until_line(process, process.stdout, b"output.delta")
        assert process.stdout is not None
        process.stdout._transport.close()  # type: ignore[attr-defined] # the only way to stop reading
        cli.model.release("more")
        assert process.stderr is not None
        assert await process.stderr.read() == b""
        assert await process.wait() == 141


@pytest.mark.slow
async def test_full_disk_is_reported_in_one_sentence(home: Path, environ: dict[str, str]) -> None:
    async with open_command_line("process", home, environ, text_replies("much")) as cli:
        full = os.open("/dev/full", os.O_WRONLY)
        process = await cli.start("-p", "x", stdout=full)
        os.close(full)
        _, err = await process.communicate()
    assert process.returncode == 1
    assert err == b"The output cannot be written: No space left on device.\n"


@GATEWAY
@pytest.mark.slow
async def test_answer_has_no_control_characters_on_a_terminal(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    wild = "\x1b]0;title\x07 \u202egnp.exe\u202c \x9b31m ok\tyes"
    async with open_command_line(way, home, environ, text_replies(wild, wild)) as cli:
        master, slave = pty.openpty()
        process = await cli.start("-p", "x", stdout=slave)
        os.close(slave)
        await process.wait()
        shown = os.read(master, 65_536).decode()
        os.close(master)
        piped = await cli.shot("x")
    assert "ok\tyes" in shown
    assert set(shown.replace("\r\n", "\n")).isdisjoint("\x1b\x07\u202e\u202c\x9b")
    assert piped.out.decode() == wild + "\n"


@pytest.mark.slow
async def test_run_continues_when_its_gateway_restarts(home: Path, environ: dict[str, str]) -> None:
    script = Rules([Reply(text="still here", hold="go")])
    async with open_command_line("gateway", home, environ, script) as cli:
        process = await cli.start("-p", "wait", "--output-format", "stream-json")
        await cli.model.until_asked(1)
        cli.gateways[0].kill()
        await cli.gateways[0].wait()
        await cli.serve()
        cli.model.release("go")
        out, _ = await process.communicate()
        rows = [json.loads(line) for line in out.splitlines()]
    assert (process.returncode, rows[-1]["text"]) == (0, "still here")
    seqs = [row["event"]["seq"] for row in rows if "id" in row]
    assert sorted({*seqs}) == seqs


@pytest.mark.slow
async def test_task_for_another_provider_runs_in_this_process(
    home: Path, environ: dict[str, str]
) -> None:
    async with open_command_line("gateway", home, environ, text_replies("from the gateway")) as cli:
        cli.environ |= {
            "LARKSPUR_LLM__PROVIDER": "offline",
            "LARKSPUR_LLM__MODEL": "offline-demo",
        }
        other = await cli.shot("what is 6*7")
        cli.environ |= {"LARKSPUR_LLM__PROVIDER": "openai", "LARKSPUR_LLM__MODEL": "claude-x"}
        local = await cli.shot("x", "--local", "--output-format", "stream-json")
    assert "working in this process" in other.err
    assert b"42" in other.out
    assert (local.rows[0]["via"], local.rows[-1]["text"]) == ("process", "from the gateway")


@pytest.mark.slow
async def test_detached_task_runs_in_the_gateway(home: Path, environ: dict[str, str]) -> None:
    async with open_command_line("gateway", home, environ, [Reply(hang=True)]) as cli:
        result = await cli.shot("later", "--detach")
        stored = await cli.task(result.out.decode().strip())
    assert (result.code, result.err) == (0, "")
    assert stored["task"] == "later"


async def test_wrong_address_or_token_exits_with_3(home: Path, environ: dict[str, str]) -> None:
    async with open_command_line("gateway", home, environ, text_replies("never")) as cli:
        address = home_folder.find_gateway(home)
        assert address is not None
        closed = await cli.shot("x", "--server", "http://127.0.0.1:1")
        named = await cli.shot("x", "--server", address.url)
        other = home_folder.prepare(home.parent / "other")
        (other / "token").write_text("w" * 64)
        cli.environ["LARKSPUR_HOME"] = str(other)
        wrong = await cli.shot("x", "--server", address.url)
    assert (closed.code, wrong.code) == (3, 3)
    assert "No gateway answers" in closed.err
    assert (named.code, named.out) == (0, b"never\n")
    assert wrong.out == b""


@pytest.mark.slow
async def test_one_shot_through_a_gateway_imports_only_the_standard_library(
    home: Path, environ: dict[str, str]
) -> None:
    async with open_command_line("gateway", home, environ, text_replies("light")) as cli:
        program = (
            "import sys; from larkspur.main import main; sys.argv = ['larkspur', '-p', 'x'];"
            "code = main(); sys.stderr.write(' '.join(sys.modules)); sys.exit(code)"
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            program,
            env=cli.environ,
            cwd=cli.folder,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )
        out, err = await process.communicate()
    assert out == b"light\n"
    loaded = {name.partition(".")[0] for name in err.decode().split()}
    # modules that the virtual environment itself loads at every start do not count
    assert loaded - {*sys.stdlib_module_names, "__main__"} <= {"larkspur", "internal", *SITE}
    assert loaded.isdisjoint(
        {"asyncio", "dataclasses", "difflib", "msgspec", "pydantic", "sqlite3"}
    )
    assert "internal.channels.cli.application" not in err.decode().split()
    domain = {name for name in err.decode().split() if name.startswith("internal.agent")}
    # The choices of an option are there, in a module of the standard library alone.
    parts = ["internal", "agent", "domain", "permissions", "modes"]
    assert domain <= {".".join(parts[:count]) for count in range(2, len(parts) + 1)}


SITE = {"_virtualenv", "sitecustomize", "usercustomize", "_distutils_hack"}


def wait_until_full(reader: int) -> None:
    """Wait until a pipe is full, so that its writer hangs."""
    size = fcntl.fcntl(reader, fcntl.F_GETPIPE_SZ)
    held = array("i", [0])
    while held[0] < size - 4096:  # a page is not always filled to its end
        fcntl.ioctl(reader, termios.FIONREAD, held)
        os.sched_yield()
