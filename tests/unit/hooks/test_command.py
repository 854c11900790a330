"""Hooks that are commands: real processes."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from internal.hooks.answer import HookAnswer, HookFailed
from internal.hooks.command import ask_command
from tests.support.processes import wait_for_end


async def ask(folder: Path, code: str, content: bytes = b"{}", seconds: float = 20) -> HookAnswer:
    argv = (sys.executable, "-c", code)
    return await ask_command(argv, content, folder=folder, timeout_seconds=seconds)


async def test_a_command_reads_json_and_answers_json(tmp_path: Path) -> None:
    code = (
        "import json, os, sys; given = json.load(sys.stdin);"
        "reason = f\"{given['a']} {os.getcwd()} {sorted(os.environ)}\";"
        "print(json.dumps({'decision': 'block', 'reason': reason}))"
    )
    answer = await ask(tmp_path, code, json.dumps({"a": "x" * 1000}).encode())
    variables = "['HOME', 'LANG', 'PATH']"
    assert answer == HookAnswer("refuse", f"{'x' * 1000} {tmp_path} {variables}")


async def test_exit_code_2_refuses_with_the_words_on_standard_error(tmp_path: Path) -> None:
    code = "import sys; print('{'); print('not today', file=sys.stderr); sys.exit(2)"
    assert await ask(tmp_path, code) == HookAnswer("refuse", "not today")


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("import sys; print('why', file=sys.stderr); sys.exit(3)", "exit code 3: why"),
        ("import os; os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("print('x' * 10_000_000)", "more than 1000000 bytes"),
        ("import sys; print('x' * 10_000_000, file=sys.stderr)", "more than 1000000 bytes"),
        ("print('checked')", "one JSON object"),
    ],
)
async def test_a_failure_says_why(tmp_path: Path, code: str, sentence: str) -> None:
    with pytest.raises(HookFailed, match=sentence):
        await ask(tmp_path, code)


async def test_a_program_that_does_not_exist_is_a_failure(tmp_path: Path) -> None:
    for program in ("no-such-hook", "/no/such/hook", str(tmp_path)):
        with pytest.raises(HookFailed, match="cannot be started: "):
            await ask_command([program], b"{}", folder=tmp_path, timeout_seconds=20)


@pytest.mark.slow
async def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time; child = subprocess.Popen(['sleep', '600']);"
        "open('child', 'w').write(str(child.pid)); time.sleep(600)"
    )
    with pytest.raises(HookFailed, match="did not end within 2 s"):
        await ask(tmp_path, code, seconds=2)
    await wait_for_end(int((tmp_path / "child").read_text()))


async def test_a_child_that_keeps_the_output_open_is_killed(tmp_path: Path) -> None:
    code = "import subprocess; subprocess.Popen(['sleep', '600']); print('{}')"
    assert await ask(tmp_path, code) == HookAnswer()


async def test_a_cancelled_command_is_killed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    code = "import os, time; open('started', 'w').write(str(os.getpid())); time.sleep(600)"
    asking = asyncio.create_task(ask(tmp_path, code))
    pid = int(await asyncio.to_thread((tmp_path / "started").read_text))
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await wait_for_end(pid)


@pytest.mark.slow
async def test_a_process_that_leaves_the_group_does_not_hold_the_run(tmp_path: Path) -> None:
    code = (
        "import subprocess; child = subprocess.Popen(['sleep', '600'], start_new_session=True);"
        "open('child', 'w').write(str(child.pid))"
    )
    with pytest.raises(HookFailed, match="did not end within 2 s"):
        await ask(tmp_path, code, seconds=2)
    os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)
