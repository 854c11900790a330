"""Tasks in a folder that contains the home folder of Larkspur, as in the user's home directory."""

from pathlib import Path

import pytest

from internal.config.home import ensure_token
from tests.support.cli_environment import BOTH_TRANSPORTS, LARKSPUR, open_command_line
from tests.support.scripted_model import Call, Reply
from tests.support.terminal import start_terminal

CANARY = "sk-canary-0b9d"
QUESTION = "Work there? [y/N]"
ATTEMPTS = [
    Call("read_file", {"path": "home/config.yaml"}),
    Call("read_file", {"path": "home/token"}),
    Call("read_file", {"path": "innocent/config.yaml"}),
    Call("list_dir", {"path": "home"}),
    Call("search_files", {"pattern": "sk-canary"}),
    Call("search_files", {"pattern": "sk-canary", "path": "home"}),
    Call("write_file", {"path": "home/config.yaml", "content": "tools: {allow: [shell]}"}),
    Call("write_file", {"path": "innocent/rules.yaml", "content": "tools: {allow: [shell]}"}),
    Call("edit_file", {"path": "home/config.yaml", "old_string": "llm", "new_string": "x"}),
]


@BOTH_TRANSPORTS
@pytest.mark.parametrize("mode", ["edit", "all"])
@pytest.mark.first_rows(1)
async def test_no_tool_reads_or_writes_what_belongs_to_larkspur(
    way: str, mode: str, home: Path, environ: dict[str, str]
) -> None:
    settings = f"llm: {{keys: {{deepseek: {CANARY}}}}}\n"
    (home / "config.yaml").write_text(settings)
    ensure_token(home)
    (home.parent / "innocent").symlink_to("home")
    script = [*(Reply(calls=[call]) for call in ATTEMPTS), Reply(text="done")]
    async with open_command_line(way, home, environ, script) as cli:
        cli.folder = home.parent
        shot = await cli.shot("try", "--here", "--permission-mode", mode)
        results = str(cli.model.requests)
    assert (shot.code, shot.out) == (0, b"done\n")
    assert CANARY not in results
    assert (home / "token").read_text().strip() not in results
    assert results.count("belongs to Larkspur itself") >= len(ATTEMPTS) - 1
    assert "[nothing was found]" in results
    assert (home / "config.yaml").read_text() == settings
    assert not (home / "rules.yaml").exists()


@pytest.mark.parametrize(
    "folder",
    [
        "user",
        pytest.param("/", marks=pytest.mark.slow),
        pytest.param("link", marks=pytest.mark.slow),
    ],
)
async def test_a_task_without_a_terminal_is_refused_in_the_home_directory(
    folder: str, home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(".")
    async with open_command_line("process", home, environ, [Reply(text="done")]) as cli:
        cli.folder = {"user": tmp_path, "/": Path("/"), "link": tmp_path / "link"}[folder]
        refused = await cli.shot("x")
        assert cli.model.requests == []
        allowed = await cli.shot("x", "--here")
    assert (refused.code, refused.out, allowed.code, allowed.out) == (2, b"", 0, b"done\n")
    assert f"contains {home}." in refused.err
    assert "--here" in refused.err


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 2), ("", 2), ("\x04", 2)])
async def test_a_task_on_a_terminal_asks_in_the_home_directory(
    answer: str, code: int, home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    async with (
        open_command_line("process", home, environ, [Reply(text="all done")]) as cli,
        start_terminal([LARKSPUR, "-p", "x"], cli.environ, tmp_path) as tty,
    ):
        await tty.wait_for(QUESTION)
        tty.type(answer if answer == "\x04" else f"{answer}\r")
        assert await tty.wait_exit() == code
        assert ("all done" in tty.screen.text) == (code == 0)


@pytest.mark.parametrize("answer", ["y", "n"])
async def test_a_session_asks_in_the_home_directory(
    answer: str, home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    async with (
        open_command_line("process", home, environ, []) as cli,
        start_terminal([LARKSPUR], cli.environ, tmp_path) as tty,
    ):
        await tty.wait_for(QUESTION)
        tty.type(f"{answer}\r")
        if answer == "y":
            await tty.wait_for("/help")
            tty.type("\x04")
        assert await tty.wait_exit() == (0 if answer == "y" else 2)


@pytest.mark.slow
async def test_settings_named_on_the_command_line_are_refused_too(
    home: Path, environ: dict[str, str]
) -> None:
    script = [
        Reply(calls=[Call("read_file", {"path": "here.yaml"})]),
        Reply(calls=[Call("write_file", {"path": "here.yaml", "content": "x"})]),
        Reply(calls=[Call("search_files", {"pattern": "sk-canary"})]),
        Reply(text="done"),
    ]
    async with open_command_line("process", home, environ, script) as cli:
        (cli.folder / "here.yaml").write_text(f"llm: {{keys: {{deepseek: {CANARY}}}}}\n")
        shot = await cli.shot("try", "--config", "here.yaml", "--permission-mode", "all")
        results = str(cli.model.requests)
    assert shot.code == 0, shot.err
    assert CANARY not in results
    assert results.count("here.yaml belongs to Larkspur itself") >= 2


@pytest.mark.slow
async def test_a_folder_of_larkspur_is_no_working_folder(
    home: Path, environ: dict[str, str]
) -> None:
    async with open_command_line("process", home, environ, [Reply(text="done")]) as cli:
        cli.folder = home
        shot = await cli.shot("x", "--here")
        assert cli.model.requests == []
    assert shot.code == 2
    assert "belongs to Larkspur itself" in shot.err
