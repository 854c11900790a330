"""A session as a process at a real terminal: with a gateway, and in its own process."""

import os
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests import ROOT
from tests.e2e.test_cli_oneshot import BOTH_WAYS, LARKSPUR, Place, place
from tests.support.scripted_model import Call, Fault, Reply, Rules, Script, When
from tests.support.terminal import Seat, seat

READY = "/help"
SLEEP = Call("shell", {"command": "exec sleep 1000"})


class Here:
    """A seat, the place it stands in, and how the terminal was before."""

    def __init__(self, there: Place, at: Seat) -> None:
        self.there, self.at = there, at
        self.before = at.modes()

    async def ask(self, text: str) -> None:
        self.at.type(f"{text}\r")
        await self.at.sees(f"> {text}")

    async def left_sane(self) -> int:
        """Wait for the end; the terminal is as it was."""
        code = await self.at.end()
        assert self.at.modes() == self.before
        raw = bytes(self.at.raw)
        for on, off in ((b"\x1b[?2004h", b"\x1b[?2004l"), (b"\x1b[?25l", b"\x1b[?25h")):
            assert raw.rfind(on) <= raw.rfind(off), on
        assert b"\x1b[?1049h" not in raw
        assert b"Traceback" not in raw
        return code


@asynccontextmanager
async def session(
    way: str,
    home: Path,
    environ: dict[str, str],
    script: Script,
    *argv: str,
    size: tuple[int, int] = (80, 24),
) -> AsyncGenerator[Here]:
    async with (
        place(way, home, environ, script) as there,
        seat([LARKSPUR, *argv], there.environ, there.folder, size) as at,
    ):
        here = Here(there, at)
        await at.until(lambda: READY in at.glass.text)
        yield here


@BOTH_WAYS
async def test_what_is_said_is_answered_and_stays_above(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [
        Reply(text="I look.", calls=[Call("list_dir", {})]),
        Reply(text="# Found\n\n- **one**\n- 二\n", pieces=9, packets="each"),
    ]
    async with session(way, home, environ, script) as here:
        await here.ask("look around")
        await here.at.sees(" in ", " out", "• 二")
        here.at.type("\x04")
        code = await here.left_sane()
        rows = [row for row in here.at.glass.text.splitlines() if row]
    assert code == 0
    assert rows[1:6] == ["> look around", "● I look.", rows[3], "● Found", "  • one"]
    assert re.fullmatch(r"✓ list_dir +0\.\ds · 0 lines", rows[3])
    assert rows[6] == "  • 二"
    assert re.fullmatch(r"✓ \d+\.\ds · [\d.k]+ in \d+ out", rows[7])
    assert "Resume this session:" in rows[8]


@BOTH_WAYS
async def test_words_while_it_works_steer_it(way: str, home: Path, environ: dict[str, str]) -> None:
    script = Rules(
        [
            Reply(text="Shorter, then.", when=When(last_text="shorter")),
            Reply(text="x", calls=[Call("list_dir", {})], hold="go", after_pieces=0),
        ]
    )
    async with session(way, home, environ, script) as here:
        await here.ask("a long poem")
        await here.there.model.until_open(1)
        await here.ask("shorter")
        await here.at.sees("> shorter  ↳ noted")
        here.there.model.release("go")
        await here.at.sees("Shorter, then.", " out")
        assert here.at.glass.text.count("shorter") == 1


async def test_tab_queues_and_up_takes_back(home: Path, environ: dict[str, str]) -> None:
    script = [Reply(text="first done", hold="go"), Reply(text="second done")]
    async with session("process", home, environ, script) as here:
        await here.ask("one")
        await here.there.model.until_open(1)
        here.at.type("two\t")
        await here.at.sees("1 queued")
        here.at.type("\x1b[A")
        await here.at.until(lambda: "queued" not in here.at.glass.text)
        await here.at.sees("two")
        here.at.type("\t")
        await here.at.sees("1 queued")
        here.there.model.release("go")
        await here.at.sees("first done", "> two", "second done")


@BOTH_WAYS
async def test_ctrl_c_clears_then_stops_then_quits(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(text="Half of it", hold="never", after_pieces=1, pieces=2)]
    async with session(way, home, environ, script) as here:
        await here.ask("go")
        await here.there.model.until_open(1)
        here.at.type("draft")
        await here.at.sees("draft")
        here.at.type("\x03")
        await here.at.until(lambda: "draft" not in here.at.glass.text)
        here.at.type("\x03")
        await here.at.sees("■ stopped")
        await here.at.until(lambda: "esc stop" not in here.at.glass.text)
        assert "via" not in here.at.glass.text
        here.at.type("\x03")
        await here.at.sees("Press Ctrl+C again to quit")
        here.at.type("\x03")
        assert await here.left_sane() == 130
        task = await here.there.only_task()
    assert (task["status"], task["stop_reason"]) == ("cancelled", "user_stop")


async def test_esc_stops_and_keeps_the_text(home: Path, environ: dict[str, str]) -> None:
    script = [Reply(text="x", calls=[SLEEP])]
    argv = ("--permission-mode", "full", "go")
    async with session("process", home, environ, script, *argv) as here:
        await here.at.sees("◆ shell exec sleep 1000")
        here.at.type("draft\x1b")
        await here.at.sees("■ stopped", "draft")
        here.at.type("\x03\x04")
        assert await here.left_sane() == 0


@BOTH_WAYS
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
async def test_a_signal_stops_the_task_and_leaves_the_terminal_sane(
    way: str, number: signal.Signals, code: int, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(text="Half of it", hold="never", after_pieces=1, pieces=2)]
    async with session(way, home, environ, script) as here:
        await here.ask("go")
        await here.there.model.until_open(1)
        here.at.process.send_signal(number)
        if number == signal.SIGINT:  # as the key: the first stops, two more leave
            await here.at.sees("■ stopped")
            here.at.type("\x03\x03")
        assert await here.left_sane() == code
        task = await here.there.only_task()
    assert task["status"] == "cancelled"


async def test_a_signal_before_the_prompt_leaves_the_terminal_sane(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async with seat([LARKSPUR], environ, tmp_path) as at:
        before = at.modes()
        at.process.send_signal(signal.SIGTERM)
        assert await at.end() in {143, -signal.SIGTERM}
        assert at.modes() == before


async def test_it_can_be_suspended_and_resumed(home: Path, environ: dict[str, str]) -> None:
    async with place("process", home, environ, [Reply(text="still here")]) as there:
        shell = {**there.environ, "PS1": "sh> ", "BASH_SILENCE_DEPRECATION_WARNING": "1"}
        command = ["bash", "--norc", "--noprofile", "-i"]
        async with seat(command, shell, there.folder) as at:
            await at.sees("sh>")
            at.type(f"stty -a | md5sum; {LARKSPUR}\r")
            await at.sees("larkspur 0.", "/ commands")
            at.type("draft\x1a")
            await at.sees("Stopped")
            await at.until(lambda: at.glass.rows[at.glass.cursor.y] == "sh>")
            at.type("stty -a | md5sum\r")
            sums = re.compile(r"^[0-9a-f]{32}", re.MULTILINE)
            await at.until(lambda: len(sums.findall(at.glass.text)) == 2)
            assert len(set(sums.findall(at.glass.text))) == 1
            at.type("fg\r")
            await at.until(lambda: at.glass.rows[at.glass.cursor.y].endswith("draft"))
            at.type("\x03are you there?\r")
            await at.sees("● still here", " out")
            at.type("\x04")
            await at.until(lambda: at.glass.rows[at.glass.cursor.y] == "sh>")
            assert "draft" not in at.glass.rows[at.glass.cursor.y - 1]


async def test_the_window_may_change_in_the_middle_of_a_reply(
    home: Path, environ: dict[str, str]
) -> None:
    said = " ".join(f"word{n}" for n in range(120))
    script = [Reply(text=said, pieces=12, hold="go", after_pieces=6)]
    async with session("process", home, environ, script) as here:
        await here.ask("tell")
        await here.at.sees("word40")
        for columns, rows in ((40, 24), (3, 24), (100, 8), (80, 2), (60, 30)):
            here.at.resize(columns, rows)
            await here.at.until(settled(here.at))
        here.there.model.release("go")
        await here.at.sees("word119", " out")
        found = re.findall(r"word(\d+)", re.sub(r"\s+", " ", here.at.glass.text))
        assert [int(one) for one in found][-20:] == list(range(100, 120))


async def test_a_connection_that_breaks_says_so_once_and_repeats_nothing(
    home: Path, environ: dict[str, str]
) -> None:
    said = "First block.\n\nSecond block.\n\n" + "third " * 30
    script = [
        Reply(text=said, pieces=20, fault=Fault("error_in_stream", after_pieces=14)),
        Reply(text=said, pieces=20),
    ]
    async with session("process", home, environ, script) as here:
        await here.ask("tell")
        await here.at.sees(" out")
        shown = here.at.glass.text
    assert shown.count("First block.") == shown.count("Second block.") == 1
    assert shown.count("third") == 30


async def test_chinese_by_locale_and_its_commands(home: Path, environ: dict[str, str]) -> None:
    chinese = {**environ, "LANG": "zh_CN.UTF-8"}
    async with session("process", home, chinese, [Reply(text="你好")]) as here:
        await here.at.sees("工具直接在本机运行")
        here.at.type("/计划\r")
        await here.at.sees("当前会话没有计划")
        await here.ask("问好")
        await here.at.sees("● 你好", "输入")


async def test_commands_answer(home: Path, environ: dict[str, str]) -> None:
    script = [Reply(text="one"), Reply(text="two")]
    async with session("gateway", home, environ, script) as here:
        await here.ask("say one")
        await here.at.sees("● one", " out")
        for command, answer in (
            ("/hepl", "Did you mean /help?"),
            ("/permissions plan", "Permission mode: plan."),
            ("/permissions allow shell(ls)", "allow shell(ls)"),
            ("/permissions allow (((", "✕"),
            ("/rename A good name", "Renamed this session to A good name"),
            ("/model claude-y", "Model from the next message on: claude-y"),
            ("/tools", "web_fetch"),
            ("/tasks", "task-"),
            ("/cost", "Session cost: "),
            ("/export out.md", "Saved to"),
            ("/theme dark", "Theme: dark"),
            ("/new", "Started a new session."),
            ("/resume", "A good name"),
        ):
            here.at.type(f"{command}\r")
            await here.at.sees(answer)
        assert "> say one\n\none\n" in (here.there.folder / "out.md").read_text()
        await here.ask("say two")
        await here.at.sees("● two")
        tasks = {request["model"] for request in here.there.model.requests}
    assert "claude-y" in tasks


async def test_a_denied_call_names_the_rule_and_the_rule_allows_it(
    home: Path, environ: dict[str, str]
) -> None:
    write = Call("write_file", {"path": "a.txt", "content": "hi"})
    script = [
        *(Reply(calls=[write]), Reply(text="denied")),
        *(Reply(calls=[write]), Reply(text="written")),
    ]
    async with session("process", home, environ, script, "--permission-mode", "deny") as here:
        await here.ask("write")
        await here.at.sees("! denied", "--allow 'write_file(a.txt)' would allow it", "● denied")
        here.at.type("/permissions allow write_file(a.txt)\r")
        await here.at.sees("From the next message on: allow")
        await here.ask("again")
        await here.at.sees("● written")
        assert (here.there.folder / "a.txt").read_text() == "hi"


async def test_a_long_paste_becomes_a_chip_and_is_sent_whole(
    home: Path, environ: dict[str, str]
) -> None:
    pasted = "\n".join(f"line {n}" for n in range(50))
    async with session("process", home, environ, [Reply(text="read")]) as here:
        here.at.type(f"\x1b[200~{pasted}\x1b[201~")
        await here.at.sees("[pasted 1: 50 lines]")
        here.at.type(" please\r")
        await here.at.sees("● read")
        (request,) = here.there.model.requests
    assert f"{pasted} please" in str(request["messages"]).replace("\\n", "\n")


async def test_ten_megabytes_go_along_as_a_file(home: Path, environ: dict[str, str]) -> None:
    async with session("process", home, environ, [Reply(text="got it")]) as here:
        await here.at.pour("\x1b[200~" + "0123456789abcde\n" * 655_360 + "\x1b[201~")
        await here.at.sees("[pasted 1: 655361 lines]")
        here.at.type("\r")
        await here.at.sees("● got it", "pasted-1.txt")


async def test_what_a_model_sends_cannot_drive_the_terminal(
    home: Path, environ: dict[str, str]
) -> None:
    evil = "a\x1b]0;title\x07b\x1b[2Jc\u202ed\x9b31m 👩‍👩‍👧 e"
    async with session("process", home, environ, [Reply(text=evil)]) as here:
        await here.ask("go")
        await here.at.sees(" out")
        raw = bytes(here.at.raw).decode()
    assert "\x1b]0;" not in raw
    assert "\x1b[2J" not in raw
    assert "\u202e" not in raw
    assert "\\u001b[2J" in raw


async def test_what_was_said_comes_back_in_the_next_session(
    home: Path, environ: dict[str, str]
) -> None:
    async with session("process", home, environ, [Reply(text="fine")]) as here:
        await here.ask("remember me")
        await here.at.sees("● fine", " out")
        here.at.type("\x04")
        await here.at.end()
        async with seat([LARKSPUR, "-c"], here.there.environ, here.there.folder) as again:
            await again.sees("> remember me", "● fine")
            again.type("\x1b[A")
            await again.until(lambda: again.glass.text.count("remember me") == 2)
    kept = home / "history"
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("term", ["dumb", ""])
async def test_a_terminal_that_cannot_is_told_what_can(
    term: str, home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    async with seat([LARKSPUR, "do it"], {**environ, "TERM": term}, tmp_path) as at:
        assert await at.end() == 2
        assert 'larkspur -p "do it"' in at.glass.text.replace("\n", " ")
    assert not (home / "history").exists()


async def test_no_colour_and_plain_signs(home: Path, environ: dict[str, str]) -> None:
    plain = {**environ, "NO_COLOR": "1"}
    script = [Reply(text="- one", calls=[Call("list_dir", {})]), Reply(text="done")]
    async with session("process", home, plain, script, "--ascii", "go") as here:
        await here.at.sees("* done", " out")
        raw = bytes(here.at.raw)
        assert here.at.glass.text.replace("·", "-").isascii()
    assert not re.search(rb"\x1b\[[0-9;]*3[0-7]m|38;5", raw)


async def test_a_missing_key_is_an_error(home: Path, environ: dict[str, str]) -> None:
    keyless = {**environ, "LARKSPUR_LLM__PROVIDER": "anthropic"}
    async with seat([LARKSPUR], keyless, home.parent) as at:
        before = at.modes()
        assert await at.end() == 3
        assert "ANTHROPIC_API_KEY" in at.glass.text
        assert at.modes() == before


def settled(at: Seat) -> "Settled":
    return Settled(at)


class Settled:
    """Holds once something was drawn since, with the frame's end seen."""

    def __init__(self, at: Seat) -> None:
        self.at, self.seen = at, len(at.raw)

    def __call__(self) -> bool:
        return b"\x1b[?2026l" in bytes(self.at.raw[self.seen :])


async def test_a_gateway_that_goes_away_is_waited_for(home: Path, environ: dict[str, str]) -> None:
    script = Rules(
        [
            Reply(text="after it came back", when=When(last_user="again")),
            Reply(text="One block.\n\nAnd another", pieces=6, hold="go", after_pieces=5),
        ]
    )
    async with session("gateway", home, environ, script) as here:
        await here.ask("go")
        await here.at.sees("One block.", "And")
        (gateway,) = here.there.gateways
        gateway.terminate()
        await here.at.sees("Can't reach the gateway")
        await gateway.wait()
        await here.there.serve()
        here.there.model.release("go")
        await here.at.sees("And another", " out")
        assert here.at.glass.text.count("One block.") == 1
        await here.ask("again")
        await here.at.sees("after it came back")


async def test_a_terminal_that_is_gone_ends_the_session(
    home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(text="Half of it", hold="never", after_pieces=1, pieces=2)]
    async with session("process", home, environ, script) as here:
        await here.ask("go")
        await here.there.model.until_open(1)
        here.at.hang_up()
        assert await here.at.process.wait() in {129, 141}
        task = await here.there.only_task()
    assert task["status"] == "cancelled"


FIRST_FRAME = """
import asyncio, os, sys
from contextlib import asynccontextmanager
from pathlib import Path
from internal.channels.cli.exit_codes import CliExit
from internal.channels.cli.repl.app import ReplOptions, run_repl_session
from internal.channels.cli.repl.session import TaskChoices

@asynccontextmanager
async def open_services(_report):
    drawn = asyncio.Event()
    asyncio.get_running_loop().add_reader(os.open("drawn", os.O_RDWR | os.O_NONBLOCK), drawn.set)
    await drawn.wait()
    raise CliExit(42, "rich" if "rich" in sys.modules else "no rich yet")
    yield

options = ReplOptions(TaskChoices({}), Path("."), Path("history"), "en", "0", term="xterm-256color")
try:
    asyncio.run(run_repl_session(options, open_services))
except CliExit as leave:
    print(leave)
    sys.exit(leave.code)
"""


async def test_rich_is_not_imported_before_the_first_frame(
    environ: dict[str, str], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "drawn")
    command = [sys.executable, "-c", FIRST_FRAME]
    environ = {**environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "cmd")])}
    async with seat(command, environ, tmp_path) as at:
        await at.sees("/ commands")
        (tmp_path / "drawn").write_bytes(b".")
        assert await at.end() == 42
        await at.sees("no rich yet")
