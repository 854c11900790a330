"""Commands on tasks and records, through a running gateway and in their own process."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.cli_environment import (
    GATEWAY,
    LARKSPUR,
    PROCESS,
    CliEnvironment,
    Result,
    open_command_line,
)
from tests.support.scripted_model import Call, Reply, Rules, When


async def run(cli: CliEnvironment, *argv: str) -> Result:
    process = await cli.start(*argv)
    out, err = await process.communicate()
    return Result(process.returncode, out, err)


@GATEWAY
async def test_sessions_are_listed_shown_exported_renamed_and_deleted(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with open_command_line(way, home, environ, [Reply(text="*fine*")]) as cli:
        shot = await cli.shot("how are you?", "--output-format", "json")
        session_id = shot.rows[0]["session_id"]
        listed = json.loads((await run(cli, "sessions", "--json")).out)
        assert [one["session_id"] for one in listed] == [session_id]
        short = session_id[:20]
        shown = await run(cli, "sessions", "show", short)
        assert shown.out.decode() == f"<!-- {session_id} -->\n\n> how are you?\n\n*fine*\n"
        exported = await run(cli, "sessions", "export", short, "out.md")
        assert (exported.code, (cli.folder / "out.md").read_bytes()) == (0, shown.out)
        assert "cannot be written" in (await run(cli, "sessions", "export", short, "out.md")).err
        assert (await run(cli, "sessions", "rename", short, "Well")).code == 0
        assert "Well" in (await run(cli, "sessions")).out.decode()
        assert (await run(cli, "sessions", "rm", short)).code == 0
        assert (await run(cli, "sessions")).out == b""
        gone = await run(cli, "sessions", "show", short)
        assert (gone.code, gone.err) == (2, f"No id begins or ends with {short}.\n")


@PROCESS
@pytest.mark.slow
async def test_task_is_watched_steered_and_stopped(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = Rules(
        [
            Reply(text="heard", hold="end", when=When(last_text="shorter")),
            Reply(text="x", calls=[Call("list_dir", {})], hold="go"),
        ]
    )
    async with open_command_line(way, home, environ, script) as cli:
        working = await cli.start("-p", "work")
        await cli.model.until_asked(1)
        (task,) = json.loads((await run(cli, "tasks", "--json")).out)
        watching = await cli.start("watch", task["task_id"][:12])
        assert watching.stdout is not None
        assert b"> work" in await watching.stdout.readline()
        said = await run(cli, "say", task["session_id"], "shorter")
        assert (said.code, said.out) == (0, b"Noted.\n")
        cli.model.release("go")
        await cli.model.until_asked(2)
        stopped = await run(cli, "stop", task["task_id"])
        assert (stopped.code, stopped.out.decode()) == (0, task["task_id"] + "\n")
        seen, _ = await watching.communicate()
        await working.communicate()
        assert watching.returncode == 1
        assert "■ stopped" in seen.decode()
        assert "> shorter" in seen.decode()
        again = await run(cli, "say", task["task_id"], "more")
        assert again.code == 2
        assert "The task has ended (cancelled)" in again.err
        assert "has ended" in (await run(cli, "stop", task["task_id"])).err


@GATEWAY
@pytest.mark.slow
async def test_ended_task_is_watched_as_json(way: str, home: Path, environ: dict[str, str]) -> None:
    async with open_command_line(way, home, environ, [Reply(text="fine")]) as cli:
        shot = await cli.shot("how are you?", "--output-format", "json")
        watched = await run(cli, "watch", shot.rows[0]["run_id"], "--json")
    events = [row["event"]["event"] for row in watched.rows]
    assert (watched.code, events[0]) == (0, "workflow.input.received")
    assert events[-1] == "workflow.result.final"


@pytest.mark.slow
@PROCESS
async def test_costs_are_summed_by_model_and_day(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with open_command_line(way, home, environ, [Reply(text="fine")]) as cli:
        await cli.shot("how are you?")
        found = json.loads((await run(cli, "cost", "--by", "model", "--json")).out)
        (row,) = (await run(cli, "cost")).out.decode().splitlines()
    assert [one["key"] for one in found] == ["claude-x"]
    assert found[0]["output_tokens"] > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\d  \S+ in  \S+ out  price unknown", row)


@pytest.mark.slow
async def test_ambiguous_and_unknown_ids_exit_with_2(home: Path, environ: dict[str, str]) -> None:
    async with open_command_line(
        "process", home, environ, [Reply(text="1"), Reply(text="2")]
    ) as cli:
        await cli.shot("one")
        await cli.shot("two")
        many = await run(cli, "stop", "task-")
        none = await run(cli, "watch", "nothing")
    assert (many.code, many.err) == (2, "task- is ambiguous: 2 ids match.\n")
    assert (none.code, none.err) == (2, "No id begins or ends with nothing.\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.first_rows(1)
def test_completion_script_has_every_command(shell: str, environ: dict[str, str]) -> None:
    done = subprocess.run(
        [LARKSPUR, "completion", shell], env=environ, capture_output=True, check=True, text=True
    )
    for word in ("sessions", "watch", "completion", "permission-mode", "rename"):
        assert word in done.stdout


def test_bash_completes_a_command(environ: dict[str, str], tmp_path: Path) -> None:
    asked = (
        'source <("$1" completion bash); COMP_WORDS=(larkspur ses); COMP_CWORD=1; _larkspur;'
        ' echo "${COMPREPLY[@]}"'
    )
    command = ["bash", "--norc", "-c", asked, "bash", str(LARKSPUR)]
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == b"sessions\n"
