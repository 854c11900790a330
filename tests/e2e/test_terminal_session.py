"""Sessions in a real terminal, with a gateway and in one process."""

import asyncio
import os
import re
import signal
import sys
from functools import partial
from pathlib import Path
from random import Random

import pytest

from tests import ROOT
from tests.support.cli_environment import (
    GATEWAY,
    LARKSPUR,
    PROCESS,
    open_command_line,
)
from tests.support.scripted_model import Call, Fault, Reply, Rules, When
from tests.support.skills import write_skill
from tests.support.terminal import TerminalProcess, start_terminal
from tests.support.terminal_session import frame_drawn, open_terminal

SLEEP = Call("shell", {"command": "exec sleep 1000"})


@GATEWAY
async def test_replies_and_tool_rows_are_printed_in_order(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [
        Reply(text="I look.", calls=[Call("list_dir", {})]),
        Reply(text="# Found\n\n- **one**\n- 二\n", pieces=9, packets="each"),
    ]
    async with open_terminal(way, home, environ, script) as repl:
        await repl.send("look around")
        await repl.tty.wait_for(" in ", " out", "• 二")
        repl.tty.type("\x04")
        code = await repl.exit_restored()
        rows = [row for row in repl.tty.screen.text.splitlines() if row]
    assert code == 0
    limits = "runs end at 60 iterations or 30 min (settings: agent). No price is known for"
    assert rows[1] == limits
    assert rows[3] == "  5,000,000 tokens instead (agent.max_tokens)."
    rows = rows[rows.index("> look around") - 2 :]
    assert rows[2:7] == ["> look around", "● I look.", rows[4], "● Found", "  • one"]
    assert re.fullmatch(r"✓ list_dir +0\.\ds · 0 lines", rows[4])
    assert rows[7] == "  • 二"
    assert re.fullmatch(r"✓ \d+\.\ds · [\d.k]+ in \d+ out", rows[8])
    assert "Resume this session:" in rows[9]


@PROCESS
async def test_thoughts_are_folded_until_they_are_asked_for(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(thinking="First I look.", text="It is **one**.", pieces=3) for _ in range(3)]
    async with open_terminal(way, home, environ, script) as repl:
        await repl.send("how many?")
        await repl.tty.wait_for("● It is one.", " out")
        rows = [row for row in repl.tty.screen.text.splitlines() if row]
        at = rows.index("● It is one.")
        assert re.fullmatch(r"· Thought for \d+\.\ds", rows[at - 1])
        assert rows[at - 2] == "> how many?"
        assert "First I look." not in repl.tty.screen.text
        repl.tty.type("\x0f")
        await repl.tty.wait_for("· thoughts before the last reply\nFirst I look.")
        repl.tty.type("\x04")
        assert await repl.exit_restored() == 0
        place = repl.place
        result = await place.shot("how many?")
        assert (result.code, result.out, result.err) == (0, b"It is **one**.\n", "")
        shot: list[str | Path] = [LARKSPUR, "-p", "how many?"]
        async with start_terminal(shot, place.environ, place.folder) as tty:
            assert await tty.wait_exit() == 0
            thought, answer = tty.screen.text.splitlines()
    assert re.fullmatch(r"Thought for \d+\.\ds", thought)
    assert answer == "It is **one**."
    assert b"\x1b[2mThought" in tty.raw


@pytest.mark.slow
@GATEWAY
async def test_isolated_commands_run_unasked(way: str, home: Path, environ: dict[str, str]) -> None:
    del environ["LARKSPUR_SANDBOX__PROVIDER"]
    script = [
        Reply(calls=[Call("shell", {"command": "touch ran; ls / | tr '\\n' ' '"})]),
        Reply(text="done"),
    ]
    async with open_terminal(way, home, environ, script) as repl:
        await repl.tty.wait_for("commands run isolated, no network", "run · no network · claude")
        await repl.send("touch it")
        await repl.tty.wait_for("● done", " out")
        assert "run?" not in repl.tty.screen.text
        assert (repl.place.folder / "ran").exists()
        repl.tty.type("\x1b[Z")  # Shift+Tab: from the default mode to the next one
        await repl.tty.wait_for("ask · claude")


@pytest.mark.slow
@GATEWAY
async def test_background_commands_are_listed_and_stopped(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    del environ["LARKSPUR_SANDBOX__PROVIDER"]
    serves = {"command": "exec sleep 600", "background": True, "keep": True}
    script = [Reply(calls=[Call("shell", serves)]), Reply(text="it serves")]
    async with open_terminal(way, home, environ, script) as repl:
        await repl.send("serve")
        await repl.tty.wait_for("● it serves", " out")
        repl.tty.type("/ps\r")
        await repl.tty.wait_for("bg-", "running")
        (found,) = set(re.findall(r"bg-\w+", repl.tty.screen.text))
        repl.tty.type(f"/ps stop {found[:6]}\r")
        await repl.tty.wait_for(f"{found} has ended")


@PROCESS
async def test_text_steers_a_running_task(way: str, home: Path, environ: dict[str, str]) -> None:
    script = Rules(
        [
            Reply(text="Shorter, then.", when=When(last_text="shorter")),
            Reply(text="x", calls=[Call("list_dir", {})], hold="go", after_pieces=0),
        ]
    )
    async with open_terminal(way, home, environ, script) as repl:
        await repl.send("a long poem")
        await repl.place.model.until_open(1)
        await repl.send("shorter")
        await repl.tty.wait_for("> shorter  ↳ noted")
        repl.place.model.release("go")
        await repl.tty.wait_for("Shorter, then.", " out")
        assert repl.tty.screen.text.count("shorter") == 1


@pytest.mark.slow
async def test_tab_queues_text_and_up_takes_it_back(home: Path, environ: dict[str, str]) -> None:
    script = [Reply(text="first done", hold="go"), Reply(text="second done")]
    async with open_terminal("process", home, environ, script) as repl:
        await repl.send("one")
        await repl.place.model.until_open(1)
        repl.tty.type("two\t")
        await repl.tty.wait_for("1 queued")
        repl.tty.type("\x1b[A")
        await repl.tty.wait_until(lambda: "queued" not in repl.tty.screen.text)
        await repl.tty.wait_for("two")
        repl.tty.type("\t")
        await repl.tty.wait_for("1 queued")
        repl.place.model.release("go")
        await repl.tty.wait_for("first done", "> two", "second done")


@GATEWAY
@pytest.mark.slow
async def test_ctrl_c_clears_then_stops_then_quits(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(text="Half of it", hold="never", after_pieces=1, pieces=2)]
    async with open_terminal(way, home, environ, script) as repl:
        await repl.send("go")
        await repl.place.model.until_open(1)
        repl.tty.type("draft")
        await repl.tty.wait_for("draft")
        repl.tty.type("\x03")
        await repl.tty.wait_until(lambda: "draft" not in repl.tty.screen.text)
        repl.tty.type("\x03")
        await repl.tty.wait_for("■ stopped")
        await repl.tty.wait_until(lambda: "esc stop" not in repl.tty.screen.text)
        assert "via" not in repl.tty.screen.text
        repl.tty.type("\x03")
        await repl.tty.wait_for("Press Ctrl+C again to quit")
        repl.tty.type("\x03")
        assert await repl.exit_restored() == 130
        task = await repl.place.only_task()
    assert (task["status"], task["stop_reason"]) == ("cancelled", "user_stop")


@pytest.mark.slow
async def test_escape_stops_the_task_and_keeps_the_input(
    home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(text="x", calls=[SLEEP])]
    argv = ("--permission-mode", "all", "go")
    async with open_terminal("process", home, environ, script, *argv) as repl:
        await repl.tty.wait_for("◆ shell exec sleep 1000")
        repl.tty.type("draft\x1b")
        await repl.tty.wait_for("■ stopped", "draft")
        repl.tty.type("\x03\x04")
        assert await repl.exit_restored() == 0


@PROCESS
@pytest.mark.parametrize(
    ("number", "code"),
    [
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow),
        (signal.SIGINT, 130),
    ],
)
@pytest.mark.slow
async def test_a_signal_stops_the_task_and_restores_the_terminal(
    way: str, number: signal.Signals, code: int, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(text="Half of it", hold="never", after_pieces=1, pieces=2)]
    async with open_terminal(way, home, environ, script) as repl:
        await repl.send("go")
        await repl.place.model.until_open(1)
        repl.tty.process.send_signal(number)
        if number == signal.SIGINT:  # as Ctrl+C: the first stops the task, two more quit
            await repl.tty.wait_for("■ stopped")
            repl.tty.type("\x03\x03")
        assert await repl.exit_restored() == code
        task = await repl.place.only_task()
    assert task["status"] == "cancelled"


async def test_a_signal_before_the_prompt_restores_the_terminal(
    environ: dict[str, str], work: Path
) -> None:
    async with start_terminal([LARKSPUR], environ, work) as tty:
        before = tty.modes()
        tty.process.send_signal(signal.SIGTERM)
        assert await tty.wait_exit() in {143, -signal.SIGTERM}
        assert tty.modes() == before


@pytest.mark.slow
async def test_a_session_can_be_suspended_and_resumed(home: Path, environ: dict[str, str]) -> None:
    async with open_command_line("process", home, environ, [Reply(text="still here")]) as there:
        shell = {**there.environ, "PS1": "sh> ", "BASH_SILENCE_DEPRECATION_WARNING": "1"}
        command = ["bash", "--norc", "--noprofile", "-i"]
        async with start_terminal(command, shell, there.folder) as tty:
            await tty.wait_for("sh>")
            tty.type(f"stty -a | md5sum; {LARKSPUR}\r")
            await tty.wait_for("larkspur 0.", "/ commands")
            tty.type("draft\x1a")
            await tty.wait_for("Stopped")
            await tty.wait_until(lambda: tty.screen.rows[tty.screen.cursor.y] == "sh>")
            tty.type("stty -a | md5sum\r")
            sums = re.compile(r"^[0-9a-f]{32}", re.MULTILINE)
            await tty.wait_until(lambda: len(sums.findall(tty.screen.text)) == 2)
            assert len(set(sums.findall(tty.screen.text))) == 1
            tty.type("fg\r")
            await tty.wait_until(lambda: tty.screen.rows[tty.screen.cursor.y].endswith("draft"))
            tty.type("\x03are you there?\r")
            await tty.wait_for("● still here", " out")
            tty.type("\x04")
            await tty.wait_until(lambda: tty.screen.rows[tty.screen.cursor.y] == "sh>")
            assert "draft" not in tty.screen.rows[tty.screen.cursor.y - 1]


@pytest.mark.slow
async def test_the_window_can_be_resized_during_a_reply(
    home: Path, environ: dict[str, str]
) -> None:
    text = " ".join(f"word{n}" for n in range(120))
    script = [Reply(text=text, pieces=12, hold="go", after_pieces=6)]
    async with open_terminal("process", home, environ, script) as repl:
        await repl.send("tell")
        await repl.tty.wait_for("word40")
        for columns, rows in ((40, 24), (3, 24), (100, 8), (80, 2), (60, 30)):
            repl.tty.resize(columns, rows)
            await repl.tty.wait_until(frame_drawn(repl.tty))
        repl.place.model.release("go")
        await repl.tty.wait_for("word119", " out")
        found = re.findall(r"word(\d+)", re.sub(r"\s+", " ", repl.tty.screen.text))
        assert [int(one) for one in found][-20:] == list(range(100, 120))


@pytest.mark.slow
async def test_a_resize_leaves_one_frame_as_a_single_render_does(
    home: Path, environ: dict[str, str]
) -> None:
    random = Random(14)  # noqa: S311 - window sizes
    async with open_terminal("process", home, environ, [Reply(text="fine")]) as repl:
        await repl.send("hello")
        await repl.tty.wait_for("● fine", " out")
        repl.tty.type("a draft " * 6)
        await repl.tty.wait_for(("a draft " * 6).strip(), "context ")
        for _ in range(12):
            columns, rows = random.randint(20, 100), random.randint(12, 30)
            drawn = frame_drawn(repl.tty)
            repl.tty.resize(columns, rows)
            await repl.tty.wait_until(drawn)
            await repl.tty.wait_until(partial(has_one_rule, repl.tty, columns))
            lines = repl.tty.screen.text.splitlines()
            rules = [n for n, line in enumerate(lines) if "──" in line]
            assert "".join("".join(lines[rules[0] + 2 :]).split())[1:] == "adraft" * 6
        assert repl.tty.screen.text.count("● fine") == 1


@pytest.mark.slow
async def test_a_restarted_reply_repeats_no_printed_block(
    home: Path, environ: dict[str, str]
) -> None:
    text = "First block.\n\nSecond block.\n\n" + "third " * 30
    script = [
        Reply(text=text, pieces=20, fault=Fault("error_in_stream", after_pieces=14)),
        Reply(text=text, pieces=20),
    ]
    async with open_terminal("process", home, environ, script) as repl:
        await repl.send("tell")
        await repl.tty.wait_for(" out")
        shown = repl.tty.screen.text
    assert shown.count("First block.") == shown.count("Second block.") == 1
    assert shown.count("third") == 30


@pytest.mark.slow
async def test_chinese_by_locale_and_its_commands(home: Path, environ: dict[str, str]) -> None:
    chinese = {**environ, "LANG": "zh_CN.UTF-8"}
    async with open_terminal("process", home, chinese, [Reply(text="你好")]) as repl:
        await repl.tty.wait_for("命令直接在本机运行")
        repl.tty.type("/计划\r")
        await repl.tty.wait_for("当前会话没有计划")
        await repl.send("问好")
        await repl.tty.wait_for("● 你好", "输入")


async def test_slash_commands(home: Path, environ: dict[str, str]) -> None:
    script = [Reply(text="one"), Reply(text="two")]
    write_skill(home)
    async with open_terminal("gateway", home, environ, script) as repl:
        await repl.send("say one")
        await repl.tty.wait_for("● one", " out")
        repl.tty.type("/instructions\r")
        await repl.tty.wait_for("No instructions apply in this folder. /init writes AGENTS.md.")
        (repl.place.folder / "AGENTS.md").write_text("Indent with tabs.\n")
        for command, answer in (
            ("/hepl", "Did you mean /help?"),
            ("/permissions plan", "Permission mode: plan."),
            ("/permissions allow shell(ls)", "allow shell(ls)"),
            ("/permissions allow (((", "✕"),
            ("/rename A good name", "Renamed this session to A good name"),
            ("/model claude-y", "Model from the next message on: claude-y"),
            ("/tools", "web_fetch"),
            ("/tasks", "s    say one"),
            ("/skills", f"{'bird-song':20}  not reviewed  Writes down the songs of birds."),
            ("/技能", "only after a review: larkspur skills review NAME"),
            ("/mcp", "No MCP servers. Add one: larkspur mcp add NAME"),
            ("/cost", "Session cost: "),
            ("/export out.md", "Saved to"),
            ("/theme dark", "Theme: dark"),
            ("/theme", "/theme\n  plain"),  # the list; the next one filters it
            ("lig", "Theme: light"),
            ("/copy", "Copied the last answer (OSC 52)."),
            ("/instructions", "Instructions: AGENTS.md of this folder, 17 bytes"),
            ("/context", "list of skills"),
            ("/compact", "The context is shortened automatically"),
            ("/diff", "No changes."),
            ("/clear", "Started a new session."),
            ("/context", "No request was sent"),
            ("/resume", "just now  A good name"),
            ("goo", "· A good name"),
        ):
            repl.tty.type(f"{command}\r")
            await repl.tty.wait_for(answer)
        assert b"\x1b]52;c;b25l\x07" in repl.tty.raw
        assert "Theme: light" not in "\n".join(repl.tty.screen.rows)  # cleared
        (repl.place.folder / "new.txt").write_text("new")
        commit = "-c user.name=a -c user.email=a@b commit -q --allow-empty -m one"
        for command in ("init -q", commit):
            process = await asyncio.create_subprocess_exec(
                "git", *command.split(), cwd=repl.place.folder
            )
            assert await process.wait() == 0
        repl.tty.type("/diff\r")
        await repl.tty.wait_for("Changes since the last commit:", "@@ new.txt")
        assert "> say one\n\none\n" in (repl.place.folder / "out.md").read_text()
        await repl.send("say two")
        await repl.tty.wait_for("● two")
        tasks = {request["model"] for request in repl.place.model.requests}
    assert "claude-y" in tasks


@pytest.mark.slow
async def test_a_denied_call_names_the_rule_and_the_rule_allows_it(
    home: Path, environ: dict[str, str]
) -> None:
    write = Call("write_file", {"path": "a.txt", "content": "hi"})
    script = [
        *(Reply(calls=[write]), Reply(text="denied")),
        *(Reply(calls=[write]), Reply(text="written")),
    ]
    async with open_terminal("process", home, environ, script, "--permission-mode", "deny") as repl:
        await repl.send("write")
        await repl.tty.wait_for("! denied", "'write_file(a.txt)' would allow it", "● denied")
        repl.tty.type("/permissions allow write_file(a.txt)\r")
        await repl.tty.wait_for("From the next message on: allow")
        await repl.send("again")
        await repl.tty.wait_for("● written")
        assert (repl.place.folder / "a.txt").read_text() == "hi"


async def test_a_long_paste_becomes_a_placeholder_and_is_sent_whole(
    home: Path, environ: dict[str, str]
) -> None:
    pasted = "\n".join(f"line {n}" for n in range(50))
    async with open_terminal("process", home, environ, [Reply(text="read")]) as repl:
        repl.tty.type(f"\x1b[200~{pasted}\x1b[201~")
        await repl.tty.wait_for("[pasted 1: 50 lines]")
        repl.tty.type(" please\r")
        await repl.tty.wait_for("● read")
        (request,) = repl.place.model.requests
    assert f"{pasted} please" in str(request["messages"]).replace("\\n", "\n")


@pytest.mark.slow
async def test_a_paste_of_ten_megabytes_is_sent_as_a_file(
    home: Path, environ: dict[str, str]
) -> None:
    async with open_terminal("process", home, environ, [Reply(text="got it")]) as repl:
        await repl.tty.type_in_thread("\x1b[200~" + "0123456789abcde\n" * 655_360 + "\x1b[201~")
        await repl.tty.wait_for("[pasted 1: 655361 lines]")
        repl.tty.type("\r")
        await repl.tty.wait_for("● got it", "pasted-1.txt")


async def test_model_output_cannot_control_the_terminal(
    home: Path, environ: dict[str, str]
) -> None:
    evil = "a\x1b]0;title\x07b\x1b[2Jc\u202ed\x9b31m 👩‍👩‍👧 e"
    async with open_terminal("process", home, environ, [Reply(text=evil)]) as repl:
        await repl.send("go")
        await repl.tty.wait_for(" out")
        raw = bytes(repl.tty.raw).decode()
    assert "\x1b]0;" not in raw
    assert "\x1b[2J" not in raw
    assert "\u202e" not in raw
    assert "\\u001b[2J" in raw


@pytest.mark.slow
async def test_the_next_session_has_the_transcript_and_the_history(
    home: Path, environ: dict[str, str]
) -> None:
    async with open_terminal("process", home, environ, [Reply(text="fine")]) as repl:
        await repl.send("remember me")
        await repl.tty.wait_for("● fine", " out")
        repl.tty.type("\x04")
        await repl.tty.wait_exit()
        async with start_terminal([LARKSPUR, "-c"], repl.place.environ, repl.place.folder) as again:
            await again.wait_for("> remember me", "● fine")
            again.type("\x1b[A")
            await again.wait_until(lambda: again.screen.text.count("remember me") == 2)
    kept = home / "history"
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("term", ["dumb", ""])
async def test_an_unsupported_terminal_gets_the_one_shot_command(
    term: str, home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    async with start_terminal([LARKSPUR, "do it"], {**environ, "TERM": term}, tmp_path) as tty:
        assert await tty.wait_exit() == 2
        assert 'larkspur -p "do it"' in tty.screen.text.replace("\n", " ")
    assert not (home / "history").exists()


@pytest.mark.slow
async def test_no_colours_and_ascii_glyphs(home: Path, environ: dict[str, str]) -> None:
    plain = {**environ, "NO_COLOR": "1"}
    script = [Reply(text="- one", calls=[Call("list_dir", {})]), Reply(text="done")]
    async with open_terminal("process", home, plain, script, "--ascii", "go") as repl:
        await repl.tty.wait_for("* done", " out")
        raw = bytes(repl.tty.raw)
        assert repl.tty.screen.text.replace("·", "-").isascii()
    assert not re.search(rb"\x1b\[[0-9;]*3[0-7]m|38;5", raw)


async def test_a_missing_key_is_an_error(work: Path, environ: dict[str, str]) -> None:
    keyless = {**environ, "LARKSPUR_LLM__PROVIDER": "anthropic"}
    async with start_terminal([LARKSPUR], keyless, work) as tty:
        before = tty.modes()
        assert await tty.wait_exit() == 3
        assert "ANTHROPIC_API_KEY" in tty.screen.text
        assert tty.modes() == before


def has_one_rule(tty: TerminalProcess, columns: int) -> bool:
    rules = [line for line in tty.screen.text.splitlines() if "──" in line]
    return rules == ["─" * columns]


@pytest.mark.slow
async def test_a_session_reconnects_to_a_restarted_gateway(
    home: Path, environ: dict[str, str]
) -> None:
    script = Rules(
        [
            Reply(text="after it came back", when=When(last_user="again")),
            Reply(text="One block.\n\nAnd another", pieces=6, hold="go", after_pieces=5),
        ]
    )
    async with open_terminal("gateway", home, environ, script) as repl:
        await repl.send("go")
        await repl.tty.wait_for("One block.", "And")
        (gateway,) = repl.place.gateways
        gateway.terminate()
        await repl.tty.wait_for("Can't reach the gateway")
        await gateway.wait()
        await repl.place.serve()
        repl.place.model.release("go")
        await repl.tty.wait_for("And another", " out")
        assert repl.tty.screen.text.count("One block.") == 1
        await repl.send("again")
        await repl.tty.wait_for("after it came back")


@pytest.mark.slow
async def test_a_closed_terminal_ends_the_session(home: Path, environ: dict[str, str]) -> None:
    script = [Reply(text="Half of it", hold="never", after_pieces=1, pieces=2)]
    async with open_terminal("process", home, environ, script) as repl:
        await repl.send("go")
        await repl.place.model.until_open(1)
        repl.tty.hang_up()
        assert await repl.tty.process.wait() in {129, 141}
        task = await repl.place.only_task()
    assert task["status"] == "cancelled"


FIRST_FRAME = """
import asyncio, os, sys
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
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

options = ReplOptions(TaskChoices({}), Path("."), Path("history"), "en", "0")
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
    async with start_terminal(command, environ, tmp_path) as tty:
        await tty.wait_for("/ commands")
        (tmp_path / "drawn").write_bytes(b".")
        assert await tty.wait_exit() == 42
        await tty.wait_for("no rich yet")
