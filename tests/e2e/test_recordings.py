"""A session with a real provider is recorded, and replayed by the demo model without one."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli_environment import CliEnvironment, Result, open_command_line
from tests.support.scripted_model import Call, Reply

WRITE = Call("write_file", {"path": "notes.md", "content": "spring\n"})
REPLIES = [
    Reply(text="First the file.", calls=[WRITE, Call("list_dir", {"path": "."})]),
    Reply(text="It is written.", times=9),
]
ALLOWED = ("--allow", "write_file(notes.md)")


async def replay(cli: CliEnvironment, recording: Path, *argv: str) -> Result:
    """Run a task with the recording, and without any key or server."""
    kept = {"PATH", "LANG", "HOME", "LARKSPUR_HOME"}
    kept |= {"LARKSPUR_AGENT__GATES", "LARKSPUR_SANDBOX__PROVIDER"}
    environ = {name: value for name, value in cli.environ.items() if name in kept}
    environ |= {"LARKSPUR_LLM__PROVIDER": "offline", "LARKSPUR_LLM__RECORDING": str(recording)}
    cli.environ, before = environ, cli.environ
    try:
        return await cli.shot(*argv, "--output-format", "json")
    finally:
        cli.environ = before


@pytest.mark.slow
async def test_a_recorded_session_is_replayed_with_real_tools(
    home: Path, environ: dict[str, str]
) -> None:
    async with open_command_line("process", home, environ, REPLIES) as cli:
        done = await cli.shot("Write my notes", *ALLOWED, "--output-format", "json")
        process = await cli.start(
            "sessions", "export", done.rows[0]["session_id"], "demo.jsonl", "--recording"
        )
        assert await process.wait() == 0
        recording = cli.folder / "demo.jsonl"
        lines = [json.loads(line) for line in recording.read_text(encoding="utf-8").splitlines()]
        asked = len(cli.model.requests)

        (cli.folder / "notes.md").unlink()
        again = await replay(cli, recording, " write my NOTES ", *ALLOWED)
        written = (cli.folder / "notes.md").read_text(encoding="utf-8")
        denied = await replay(cli, recording, "Write my notes")
        other = await replay(cli, recording, "what is 6*7?")
        assert len(cli.model.requests) == asked
    assert [line["type"] for line in lines] == ["request", "reply", "reply"]
    assert lines[1]["calls"][0] == {"name": "write_file", "arguments": WRITE.input}
    assert (again.code, again.rows[0]["text"], written) == (0, "It is written.", "spring\n")
    assert (denied.code, denied.rows[0]["denied"][0]["tool_name"]) == (4, "write_file")
    assert "6*7 = 42" in other.rows[0]["text"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(None, "cannot be read: no such file", marks=pytest.mark.slow),
        pytest.param("", "is empty", marks=pytest.mark.slow),
        pytest.param(
            '{"type": "reply", "text": "a"}',
            "line 1: a request must be first",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            '{"type": "request", "text": "a"}\n{"type": "reply"', "line 2: ", marks=pytest.mark.slow
        ),
        ('{"type": "request", "text": "a"}\n\n{"type": "reply", "answer": 1}', "line 3: "),
        pytest.param(
            '{"type": "request", "text": 1}', "line 1: Expected `str`", marks=pytest.mark.slow
        ),
    ],
)
async def test_an_unusable_recording_is_named_with_its_line(
    content: str | None, sentence: str, home: Path, environ: dict[str, str]
) -> None:
    async with open_command_line("process", home, environ, []) as cli:
        recording = cli.folder / "demo.jsonl"
        if content is not None:
            recording.write_text(content, encoding="utf-8")
        failed = await replay(cli, recording, "hello")
    assert failed.code in {2, 3}
    assert sentence in failed.err
    assert failed.err.count("\n") == 1


@pytest.mark.slow
async def test_tools_that_are_missing_end_the_recording(
    home: Path, environ: dict[str, str]
) -> None:
    entries: list[dict[str, Any]] = [
        {"type": "request", "text": "fly"},
        {"type": "reply", "text": "Up.", "calls": [{"name": "fly_away", "arguments": {}}]},
    ]
    async with open_command_line("process", home, environ, []) as cli:
        recording = cli.folder / "demo.jsonl"
        recording.write_text("\n".join(map(json.dumps, entries)), encoding="utf-8")
        ended = await replay(cli, recording, "fly")
    assert "goes on with fly_away, which is not available here" in ended.rows[0]["text"]
