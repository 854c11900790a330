"""The commands that look and ask, in both ways."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.test_cli_oneshot import BOTH_WAYS, LARKSPUR, Place, Result, place
from tests.support.scripted_model import Call, Reply, Rules, When


async def run(there: Place, *argv: str) -> Result:
    process = await there.start(*argv)
    out, err = await process.communicate()
    return Result(process.returncode, out, err)


@BOTH_WAYS
async def test_sessions_are_listed_shown_exported_renamed_and_deleted(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with place(way, home, environ, [Reply(text="*fine*")]) as there:
        shot = await there.shot("how are you?", "--output-format", "json")
        session_id = shot.rows[0]["session_id"]
        listed = json.loads((await run(there, "sessions", "--json")).out)
        assert [one["session_id"] for one in listed] == [session_id]
        short = session_id[:20]
        shown = await run(there, "sessions", "show", short)
        assert shown.out.decode() == f"<!-- {session_id} -->\n\n> how are you?\n\n*fine*\n"
        exported = await run(there, "sessions", "export", short, "out.md")
        assert (exported.code, (there.folder / "out.md").read_bytes()) == (0, shown.out)
        assert "cannot be written" in (await run(there, "sessions", "export", short, "out.md")).err
        assert (await run(there, "sessions", "rename", short, "Well")).code == 0
        assert "Well" in (await run(there, "sessions")).out.decode()
        assert (await run(there, "sessions", "rm", short)).code == 0
        assert (await run(there, "sessions")).out == b""
        gone = await run(there, "sessions", "show", short)
        assert (gone.code, gone.err) == (2, f"No id begins or ends with {short}.\n")


@BOTH_WAYS
async def test_a_task_is_watched_steered_and_stopped(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = Rules(
        [
            Reply(text="heard", hold="end", when=When(last_text="shorter")),
            Reply(text="x", calls=[Call("list_dir", {})], hold="go"),
        ]
    )
    async with place(way, home, environ, script) as there:
        working = await there.start("-p", "work")
        await there.model.until_asked(1)
        (task,) = json.loads((await run(there, "tasks", "--json")).out)
        watching = await there.start("watch", task["task_id"][:12])
        assert watching.stdout is not None
        assert b"> work" in await watching.stdout.readline()
        said = await run(there, "say", task["session_id"], "shorter")
        assert (said.code, said.out) == (0, b"Noted.\n")
        there.model.release("go")
        await there.model.until_asked(2)
        stopped = await run(there, "stop", task["task_id"])
        assert (stopped.code, stopped.out.decode()) == (0, task["task_id"] + "\n")
        seen, _ = await watching.communicate()
        await working.communicate()
        assert watching.returncode == 1
        assert "■ stopped" in seen.decode()
        assert "> shorter" in seen.decode()
        again = await run(there, "say", task["task_id"], "more")
        assert again.code == 2
        assert "The task has ended (cancelled)" in again.err
        assert "has ended" in (await run(there, "stop", task["task_id"])).err


@BOTH_WAYS
async def test_a_task_that_ended_is_watched_as_rows(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with place(way, home, environ, [Reply(text="fine")]) as there:
        shot = await there.shot("how are you?", "--output-format", "json")
        watched = await run(there, "watch", shot.rows[0]["run_id"], "--json")
    events = [row["event"]["event"] for row in watched.rows]
    assert (watched.code, events[0]) == (0, "workflow.input.received")
    assert events[-1] == "workflow.result.final"


@BOTH_WAYS
async def test_costs_are_summed_up(way: str, home: Path, environ: dict[str, str]) -> None:
    async with place(way, home, environ, [Reply(text="fine")]) as there:
        await there.shot("how are you?")
        found = json.loads((await run(there, "cost", "--by", "model", "--json")).out)
        (row,) = (await run(there, "cost")).out.decode().splitlines()
    assert [one["key"] for one in found] == ["claude-x"]
    assert found[0]["output_tokens"] > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\d  \S+ in  \S+ out  price unknown", row)


async def test_an_id_that_is_not_enough_is_said(home: Path, environ: dict[str, str]) -> None:
    async with place("process", home, environ, [Reply(text="1"), Reply(text="2")]) as there:
        await there.shot("one")
        await there.shot("two")
        many = await run(there, "stop", "task-")
        none = await run(there, "watch", "nothing")
    assert (many.code, many.err) == (2, "task- is ambiguous: 2 ids match.\n")
    assert (none.code, none.err) == (2, "No id begins or ends with nothing.\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_is_completed(shell: str, environ: dict[str, str]) -> None:
    done = subprocess.run(
        [LARKSPUR, "completion", shell], env=environ, capture_output=True, check=True, text=True
    )
    for word in ("sessions", "watch", "completion", "permission-mode", "rename"):
        assert word in done.stdout


def test_bash_takes_the_completion(environ: dict[str, str], tmp_path: Path) -> None:
    asked = (
        'source <("$1" completion bash); COMP_WORDS=(larkspur ses); COMP_CWORD=1; _larkspur;'
        ' echo "${COMPREPLY[@]}"'
    )
    command = ["bash", "--norc", "-c", asked, "bash", str(LARKSPUR)]
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == b"sessions\n"
