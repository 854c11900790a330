"""`larkspur -p --input-format stream-json`: tasks, messages and answers on standard input."""

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli_environment import BOTH_TRANSPORTS, CliEnvironment, open_command_line
from tests.support.scripted_model import Call, Reply, Rules, When

STREAM = ("--input-format", "stream-json", "--output-format", "stream-json")
TOUCH = Call("shell", {"command": "touch ran"})


class Conversation:
    """A process with both streams open."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.rows: list[dict[str, Any]] = []

    def send(self, *messages: object, end: bytes = b"\n") -> None:
        assert self.process.stdin is not None
        for one in messages:
            self.process.stdin.write(one if isinstance(one, bytes) else json.dumps(one).encode())
            self.process.stdin.write(end)

    async def until(self, event: str) -> dict[str, Any]:
        """Return the next line of this type, or with this event."""
        assert self.process.stdout is not None
        async with asyncio.timeout(60):
            while line := await self.process.stdout.readline():
                row: dict[str, Any] = json.loads(line)
                self.rows.append(row)
                if event in {row.get("type"), row.get("event", {}).get("event")}:
                    return row
        raise AssertionError(f"no {event}")

    async def end(self) -> int:
        """Close standard input, read the rest and return the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        out, err = await self.process.communicate()
        self.rows += [json.loads(line) for line in out.splitlines()]
        assert self.process.returncode is not None
        self.err = err.decode()
        return self.process.returncode

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [row for row in self.rows if row.get("type") == kind]


@asynccontextmanager
async def conversation(cli: CliEnvironment, *argv: str) -> AsyncGenerator[Conversation]:
    process = await cli.start("-p", *argv, *STREAM, stdin=PIPE)
    try:
        yield Conversation(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


@BOTH_TRANSPORTS
@pytest.mark.slow
async def test_tasks_answers_and_unusable_lines(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    replies = [Reply(calls=[TOUCH]), Reply(text="first"), Reply(text="second"), Reply(text="third")]
    async with open_command_line(way, home, environ, replies) as cli, conversation(cli) as one:
        one.send({"type": "task", "text": "touch it"})
        await one.until("workflow.question.asked")
        one.send({"type": "answer", "answer": {"decision": "never"}})
        refused = await one.until("error")
        one.send({"type": "answer", "answer": {"decision": "approve"}})
        done = await one.until("result")
        one.send(b"not JSON", b"[]", {"type": "steer", "text": "faster"}, b"")
        one.send({"type": "task", "text": "b", "colour": "red"}, b"x" * 1_100_000)
        one.send({"type": "task", "text": "b", "files": ["missing.txt"]})
        one.send({"type": "task", "text": "again"})
        one.send({"type": "task", "text": "and the last, without a line end"}, end=b"")
        assert await one.end() == 2
        assert (cli.folder / "ran").exists()
    assert (refused["line"], "decision" in refused["message"]) == (2, True)
    assert (done["text"], done["exit_code"]) == ("first", 0)
    assert [row["text"] for row in one.of("result")] == ["first", "second", "third"]
    assert len({row["session_id"] for row in one.of("result")}) == 1
    errors = {row["line"]: row["message"] for row in one.of("error")}
    assert sorted(errors) == [2, 4, 5, 6, 8, 9, 10]
    for line, words in (
        (4, "not JSON"),
        (5, "object with a type"),
        (6, "No task is running"),
        (8, "no field 'colour'"),
        (9, "longer than 1,000,000 bytes"),
        (10, "missing.txt"),
    ):
        assert words in errors[line]


@BOTH_TRANSPORTS
@pytest.mark.slow
async def test_a_running_task_is_stopped_and_the_next_one_runs(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    replies = Rules(
        [Reply(text="after", when=When(last_user="go on")), Reply(hang=True, when=When())]
    )
    async with open_command_line(way, home, environ, replies) as cli:
        async with conversation(cli, "wait for me") as one:
            one.send({"type": "stop"})
            stopped = await one.until("result")
            one.send({"type": "task", "text": "go on"})
            assert (await one.until("result"))["text"] == "after"
            assert await one.end() == 0
        assert stopped["status"] == "cancelled"


@BOTH_TRANSPORTS
@pytest.mark.slow
async def test_the_input_ends_while_a_question_is_open(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with (
        open_command_line(way, home, environ, [Reply(calls=[TOUCH])]) as cli,
        conversation(cli, "touch it") as one,
    ):
        await one.until("workflow.question.asked")
        assert await one.end() == 6
        assert one.of("result")[0]["questions"][0]["kind"] == "approval"


@pytest.mark.slow
async def test_the_options_must_fit_together(home: Path, environ: dict[str, str]) -> None:
    async with open_command_line("process", home, environ, []) as cli:
        for argv, words in (
            (("-p", "--input-format", "stream-json"), "needs -p and --output-format stream-json"),
            (("-p", *STREAM, "--detach"), "cannot be combined"),
            (("-p", *STREAM), "contains no task"),
        ):
            process = await cli.start(*argv)
            _, err = await process.communicate()
            assert (process.returncode, words in err.decode()) == (2, True), err


@BOTH_TRANSPORTS
async def test_a_message_reaches_the_running_task(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    look = Call("list_dir", {"path": "."})
    replies = [Reply(calls=[look], hold="look"), Reply(text="done", times=9)]
    async with (
        open_command_line(way, home, environ, replies) as cli,
        conversation(cli, "look around") as one,
    ):
        one.send(
            {"type": "steer", "text": "be quick"},
            {"type": "answer", "answer": {"decision": "text", "text": ""}},
        )
        assert "0 questions are open" in (await one.until("error"))["message"]
        cli.model.release("look")
        assert (await one.until("result"))["text"] == "done"
        assert await one.end() == 2
        assert "be quick" in json.dumps(cli.model.requests[1]["messages"])


@BOTH_TRANSPORTS
@pytest.mark.slow
async def test_the_questions_of_subtasks_are_answered_one_after_the_other(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    colour = Call("request_user", {"question": "Which colour?", "options": ["red", "green"]})
    both = Call("subagent", {"tasks": [{"instruction": "ask a"}, {"instruction": "ask b"}]})
    replies = [
        Reply(calls=[both], when=When(last_user="paint", results=0)),
        Reply("painted", when=When(last_user="paint", results=1)),
        *(Reply(calls=[colour], when=When(last_user=f"ask {n}", results=0)) for n in "ab"),
        *(Reply(f"{n} is known", when=When(last_user=f"ask {n}", results=1)) for n in "ab"),
    ]
    async with (
        open_command_line(way, home, environ, Rules(replies)) as cli,
        conversation(cli, "paint") as one,
    ):
        asked = [await one.until("workflow.question.asked") for _ in "ab"]
        one.send({"type": "answer", "answer": {"decision": "text", "text": "red"}})
        assert "2 questions are open" in (await one.until("error"))["message"]
        first = asked[0]["event"]["payload"]["question_id"]
        one.send(
            {"type": "answer", "question_id": first, "answer": {"decision": "text", "text": "red"}}
        )
        await one.until("workflow.result.final")
        one.send({"type": "answer", "answer": {"decision": "text", "text": "green"}})
        assert (await one.until("result"))["text"] == "painted"
        assert await one.end() == 2
