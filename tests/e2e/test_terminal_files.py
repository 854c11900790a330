"""Files in and out of the terminal: as processes, with the demo model and scripted ones."""

import asyncio
import http.server
import json
import signal
import subprocess
import threading
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import documents
from tests.support.cli_environment import BOTH_TRANSPORTS, LARKSPUR, open_command_line
from tests.support.scripted_model import Call, Reply
from tests.support.terminal_session import open_terminal

SHARE = Call("share_file", {"paths": ["report.md"]})


@pytest.mark.parametrize(
    ("ask", "quoted"),
    [
        ("What is the total in report.pdf?", b"> Total: 4,711 EUR"),
        ("Summarise report.pdf", b"> Quarterly report\n> Total: 4,711 EUR"),
    ],
)
@pytest.mark.first_rows(1)
def test_a_question_about_a_pdf_is_answered_from_the_pdf_without_a_key(
    environ: dict[str, str], work: Path, tmp_path: Path, ask: str, quoted: bytes
) -> None:
    elsewhere = tmp_path / "report.pdf"
    elsewhere.write_bytes(documents.pdf("Quarterly report\nTotal: 4,711 EUR"))
    out, _ = run_demo(environ, work, "-p", ask, "-f", str(elsewhere))
    assert quoted in out
    assert [*work.iterdir()] == []


def test_a_report_is_made_in_the_folder_without_a_key(environ: dict[str, str], work: Path) -> None:
    report = ("-p", "make a report about larks", "--permission-mode", "edit")
    _, err = run_demo(environ, work, *report)
    line = next(line for line in err.decode().splitlines() if line.startswith("File: report.md ("))
    path = Path(line.rpartition("  ")[2])
    assert path.read_text().startswith("# A report about larks\n")
    assert [*work.rglob("*.md")] == [work / "output" / "report.md"]
    listed, _ = run_demo(environ, work, "files")
    assert b"report.md" in listed


def run_demo(environ: dict[str, str], folder: Path, *argv: str) -> tuple[bytes, bytes]:
    """Run a command without a gateway and without a key; return its output."""
    done = subprocess.run(
        [LARKSPUR, *argv, "--local"],
        env=environ,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    return done.stdout, done.stderr


@BOTH_TRANSPORTS
@pytest.mark.slow
async def test_a_shared_file_is_listed_and_saved(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[SHARE]), Reply(text="Here it is.")]
    async with open_command_line(way, home, environ, script) as cli:
        (cli.folder / "report.md").write_text("# Report\n")
        shot = await cli.shot("a report", "--output-format", "stream-json")
        last = json.loads(shot.out.splitlines()[-1])
        [file] = last["files"]
        (cli.folder / "report.md").unlink()
        saving = await cli.start("files", "get", file["artifact_id"])
        out, err = await saving.communicate()
        assert (saving.returncode, out) == (0, b"report.md\n"), err
        assert (cli.folder / "report.md").read_text() == "# Report\n"
    assert (file["name"], file["size"], file["path"]) == ("report.md", 9, None)
    assert "workflow.artifact.manifest" in {row["event"]["event"] for row in shot.rows[1:-1]}


@BOTH_TRANSPORTS
@pytest.mark.slow
async def test_a_large_file_is_in_the_input_folder_of_the_session(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with open_command_line(way, home, environ, [Reply(text="I have it.")]) as cli:
        with (cli.folder / "recording.bin").open("wb") as file:
            file.truncate(60_000_000)
        shot = await cli.shot("keep this", "-f", "recording.bin")
    assert shot.out == b"I have it.\n"
    assert sizes_of(home, "session-files/*/input/recording.bin") == [60_000_000]


def sizes_of(folder: Path, glob: str) -> list[int]:
    return [path.stat().st_size for path in folder.glob(glob)]


@BOTH_TRANSPORTS
@pytest.mark.slow
async def test_a_session_attaches_pasted_paths_and_shows_produced_files(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[SHARE]), Reply(text="Here it is.")]
    async with open_terminal(way, home, environ, script) as repl:
        folder, tty = repl.place.folder, repl.tty
        (folder / "report.md").write_text("# Report\n")
        source = folder / "my notes.txt"
        source.write_text("larks sing in spring")
        tty.type(f"\x1b[200~'{source}'\x1b[201~")
        await tty.wait_for("[my notes.txt]")
        tty.type("summarise\r")
        await tty.wait_for("Here it is.", "▤ report.md  9 bytes · larkspur files get artifact-")
        tty.type("/files\r")
        await tty.wait_until(lambda: tty.screen.text.count("▤ report.md") == 2)
        tty.type("\x04")
        assert await repl.exit_restored() == 0
        asked = json.dumps(repl.place.model.requests[0]["messages"])
    assert "larks sing in spring" in asked
    assert "[my notes.txt] summarise" in asked


@pytest.mark.slow
async def test_a_session_attaches_the_picture_of_the_clipboard(
    home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "picture").write_bytes(documents.picture("PNG"))
    (programs / "wl-paste").write_text(f"#!/bin/sh\ncat '{programs}/picture'\n")
    (programs / "wl-paste").chmod(0o700)
    ours = {**environ, "PATH": f"{programs}:{environ['PATH']}"}
    async with open_terminal("process", home, ours, [Reply(text="A lark.")]) as repl:
        repl.tty.type("\x16")
        await repl.tty.wait_for("[picture-1.png]")
        repl.tty.type("what is it?\r")
        await repl.tty.wait_for("A lark.")
        blocks = repl.place.model.requests[0]["messages"][-1]["content"]
    assert blocks[0]["type"] == "image_url"


class StalledGateway(http.server.ThreadingHTTPServer):
    """Answers health checks; reads uploads only after `go_on` is set."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _StalledHandler)
        self.uploading, self.go_on = threading.Event(), threading.Event()
        self.tasks = 0


class _StalledHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def do_POST(self) -> None:
        server: Any = self.server
        server.tasks += 1

    def do_PUT(self) -> None:
        server: Any = self.server
        server.uploading.set()
        server.go_on.wait()
        while self.rfile.read(65_536):
            pass

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def stalled() -> Iterator[StalledGateway]:
    with StalledGateway() as gateway:
        thread = threading.Thread(target=gateway.serve_forever, args=(0.01,))
        thread.start()
        yield gateway
        gateway.go_on.set()
        gateway.shutdown()
        thread.join()


async def test_ctrl_c_during_an_upload_sends_no_task(
    home: Path, environ: dict[str, str], work: Path, stalled: StalledGateway
) -> None:
    (home / "token").write_text("0" * 64)
    (home / "token").chmod(0o600)
    with (work / "large.bin").open("wb") as file:
        file.truncate(60_000_000)
    server = f"http://127.0.0.1:{stalled.server_port}"
    process = await asyncio.create_subprocess_exec(
        *(LARKSPUR, "-p", "look", "-f", "large.bin", "--server", server),
        env=environ,
        cwd=work,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    await asyncio.to_thread(stalled.uploading.wait)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert await process.stderr.readline() == b"Stopping; repeat to exit at once.\n"
    stalled.go_on.set()
    out, err = await process.communicate()
    assert (process.returncode, out) == (130, b"")
    assert b"Stopped before the task was sent." in err
    assert stalled.tasks == 0
