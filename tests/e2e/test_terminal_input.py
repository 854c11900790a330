"""Input of a session: history, pastes, commands and files."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.cli_environment import LARKSPUR
from tests.support.scripted_model import Call, Reply
from tests.support.terminal import start_terminal
from tests.support.terminal_session import open_terminal

BEGIN, END = "\x1b[200~", "\x1b[201~"


@pytest.mark.slow
async def test_pastes_are_in_the_history_and_the_search_shows_its_match(
    home: Path, environ: dict[str, str]
) -> None:
    pasted = "\n".join(f"line {n}" for n in range(12))
    async with open_terminal("process", home, environ, [Reply(text="read")] * 2) as repl:
        repl.tty.type(f"{BEGIN}{pasted}{END}")
        await repl.tty.wait_for("[pasted 1: 12 lines]")
        repl.tty.type(" please\r")
        await repl.tty.wait_for("● read", " out")
        await repl.send("something else")
        await repl.tty.wait_until(lambda: repl.tty.screen.text.count("● read") == 2)
        repl.tty.type("\x12line 7")
        await repl.tty.wait_until(lambda: repl.tty.screen.text.count("  line 7\n") == 2)
        repl.tty.type("\r")
        repl.tty.type("\x03\x04")
        assert await repl.exit_restored() == 0
        async with start_terminal([LARKSPUR], repl.place.environ, repl.place.folder) as again:
            await again.wait_for("/ commands")
            again.type("\x12line 7")
            await again.wait_for("  line 7\n")


async def test_files_shell_commands_and_own_commands_reach_the_model(
    home: Path, environ: dict[str, str]
) -> None:
    commands = home / "commands"
    commands.mkdir(parents=True)
    (commands / "fix.md").write_text("---\ndescription: fix an issue\n---\nFix $1: $ARGUMENTS.")
    (commands / "help.md").write_text("mine")
    (commands / "broken.md").write_text("---\ndescription: no end")
    script = [
        Reply(text="noted"),
        Reply(text="fixed", hold="go"),
        Reply(text="next"),
        Reply(calls=[Call("write_file", {"path": "AGENTS.md", "content": "Build: make"})]),
        Reply(text="over"),
    ]
    async with open_terminal("process", home, environ, script) as repl:
        tty, model = repl.tty, repl.place.model
        (repl.place.folder / "notes.md").write_text("the password is swordfish")
        await tty.wait_for("commands/help.md is not used", "commands/broken.md is not used")
        tty.type("!echo got-$((1+1)); exit 3\r")
        await tty.wait_for("  got-2", "✕ exit 3")
        tty.type("!sleep 1000\r")
        await tty.wait_for("ctrl+c ends it")
        tty.type("\x03")
        await tty.wait_for("✕ stopped")
        assert not model.requests
        tty.type("read @notes.md,\\\rplease\r")
        await tty.wait_for("> read @notes.md,\n  please", "● noted", "context ")
        sent = str(model.requests[0]["messages"])
        for part in (
            "read @notes.md,\\nplease",
            "swordfish",
            "$ echo got-$((1+1))",
            "[exit code 3]",
        ):
            assert part in sent, part
        tty.type("\x1b\x1b")
        await tty.wait_until(lambda: tty.screen.text.endswith("read @notes.md,\n  please"))
        tty.type("\x03/fi")
        await tty.wait_for("/fix  ", "fix an issue")
        tty.type("x 12 now\r")
        await model.until_open(1)
        tty.type("queued text\t")
        await tty.wait_for("↳ queued text")
        model.release("go")
        await tty.wait_for("● fixed", "● next")
        assert "Fix 12: 12 now." in str(model.requests[1]["messages"])
        assert "got-2" not in str(model.requests[1]["messages"][-1])
        tty.type("\x1b[Z\x1b[Z")
        await tty.wait_for("edit · claude-x")  # but this task asks
        tty.type("/init\r")
        await tty.wait_for("> Look at this folder and write AGENTS.md", "[y] once")
        assert b"\x1b]9;Larkspur waits for you\x07" in tty.raw
        tty.type("y")
        await tty.wait_for("● over")
        assert (repl.place.folder / "AGENTS.md").read_text() == "Build: make"
        assert b"\x1b[23;2t" in tty.raw


@pytest.mark.slow
async def test_the_last_message_is_edited_in_a_branch_and_sessions_are_read(
    home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(text=text) for text in ("one", "two", "three", "four")]
    async with open_terminal("process", home, environ, script) as repl:
        tty, model = repl.tty, repl.place.model
        await repl.send("the first word")
        await tty.wait_until(lambda: tty.screen.text.count("✓") == 1)
        await repl.send("the second word")
        await tty.wait_until(lambda: tty.screen.text.count("✓") == 2)
        tty.type("\x1b\x1b")
        await tty.wait_for("enter: in a branch")
        tty.type("\x1b[D" * 4 + "other \r")
        await tty.wait_for("This is a branch", "> the second other word", "● three")
        await tty.wait_until(lambda: tty.screen.text.count("✓") == 3)
        sent = str(model.requests[-1]["messages"])
        assert ("the first word" in sent, "the second word" in sent) == (True, False)
        tty.type("\x1b\x1b")
        await tty.wait_until(lambda: tty.screen.text.endswith("the second other word"))
        tty.type("\x1b")
        await tty.wait_for("It is sent as a new message.")
        tty.type("\r")
        await tty.wait_for("● four")
        await tty.wait_until(lambda: tty.screen.text.count("✓") == 4)  # while it runs, Ctrl+D asks
        assert "three" in str(model.requests[-1]["messages"])
        tty.type("\x04")
        assert await repl.exit_restored() == 0
    with closing(sqlite3.connect(home / "larkspur.db")) as database:
        origin = "select title, ended > seen from sessions where forked_from = ''"
        assert database.execute(origin).fetchall() == [("the first word", 0)]
