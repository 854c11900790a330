"""What the input of a session takes: history, pastes, commands and files."""

from pathlib import Path

from tests.e2e.test_cli_oneshot import LARKSPUR
from tests.e2e.test_terminal_session import open_session
from tests.support.scripted_model import Reply
from tests.support.terminal import start_terminal

BEGIN, END = "\x1b[200~", "\x1b[201~"


async def test_pastes_are_in_the_history_and_the_search_shows_its_match(
    home: Path, environ: dict[str, str]
) -> None:
    pasted = "\n".join(f"line {n}" for n in range(12))
    async with open_session("process", home, environ, [Reply(text="read")] * 2) as repl:
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
