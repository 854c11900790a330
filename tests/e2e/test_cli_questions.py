"""Questions on the command line: one process asks, another one answers."""

import asyncio
import json
import re
import signal
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from internal.channels.cli.command_output import short_id
from tests.support.cli_environment import (
    GATEWAY,
    PROCESS,
    CliEnvironment,
    Result,
    open_command_line,
    text_replies,
    until_line,
)
from tests.support.scripted_model import Call, Fault, Reply, Rules, When

PLAN = Call("plan", {"goal": "a report", "steps": ["collect", "write"], "complexity": "complex"})
ASK = Call("request_user", {"question": "Which colour?", "options": ["red", "green"]})
TOUCH = Call("shell", {"command": "touch made"})
JSON = ("--output-format", "json")


async def run(cli: CliEnvironment, *argv: str, stdin: bytes | None = None) -> Result:
    process = await cli.start(*argv, stdin=asyncio.subprocess.PIPE)
    out, err = await process.communicate(stdin or b"")
    return Result(process.returncode, out, err)


async def events_of(cli: CliEnvironment, result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the stored events of a run."""
    frames = await cli.stream(result["session_id"])
    events = [json.loads(frame.data) for frame in frames]
    return [one for one in events if one["run_id"] == result["run_id"]]


def event_names(events: Sequence[dict[str, Any]]) -> list[str]:
    return [one["event"].removeprefix("workflow.") for one in events]


def is_in_order(events: Sequence[dict[str, Any]]) -> bool:
    seqs = [one["seq"] for one in events]
    return seqs == sorted({*seqs})


@GATEWAY
async def test_question_is_answered_by_another_process(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[ASK]), Reply(text="painted it")]
    async with open_command_line(way, home, environ, script) as cli:
        shot = await cli.shot("paint", *JSON)
        (asked,) = shot.rows[0]["questions"]
        question = asked["question_id"]
        answered = await run(cli, "answer", question, "2", "--wait", *JSON)
        events = await events_of(cli, shot.rows[0])
    assert (shot.code, shot.rows[0]["status"], answered.code) == (6, "waiting", 0)
    assert asked == {
        "question_id": question,
        "kind": "clarify",
        "title": "Which colour?",
        "options": ["red", "green"],
    }
    task = shot.rows[0]["task_id"]
    for word in (task[-6:], "Which colour?", "1. red", f"larkspur answer {short_id(question)}"):
        assert word in shot.err
    assert answered.err == "Answer stored: green\n"
    assert answered.rows[0]["text"] == "painted it"
    assert answered.rows[0]["run_id"] == shot.rows[0]["run_id"]
    asked_and_ended = event_names(events)
    assert [name for name in asked_and_ended if name.startswith(("question", "result"))] == [
        "question.asked",
        "question.answered",
        "result.final",
    ]
    assert is_in_order(events)
    assert "green" in json.dumps(cli.model.requests[-1]["messages"])


@pytest.mark.slow
@PROCESS
async def test_edited_plan_is_reviewed_again_before_its_tools_run(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[PLAN]), Reply(calls=[TOUCH]), Reply(text="done")]
    async with open_command_line(way, home, environ, script) as cli:
        shot = await cli.shot(
            "report", "--plan-review", "complex", "--permission-mode", "all", *JSON
        )
        (asked,) = shot.rows[0]["questions"]
        made = cli.folder / "made"
        assert (shot.code, asked["kind"], made.exists()) == (6, "plan", False)
        steps = b"1. look\n2. ask\n\n3. write\n"
        first = asked["question_id"]
        edit = ("answer", first, "edit", "--steps", "-", "--wait", *JSON)
        edited = await run(cli, *edit, stdin=steps)
        second = edited.rows[0]["questions"][0]["question_id"]
        assert (edited.code, second != first, made.exists()) == (6, True, False)
        agreed = await run(cli, "answer", second, "yes", "--step", "only write", "--wait")
        events = await events_of(cli, shot.rows[0])
    assert edited.err.startswith(
        "Answer stored: your plan, to be approved again: look → ask → write"
    )
    assert (agreed.code, agreed.out) == (0, b"done\n")
    assert made.exists()
    plans = [one["payload"] for one in events if one["event"] == "workflow.plan.updated"]
    assert [plan["version"] for plan in plans] == [1, 2, 3]
    steps_of = [[step["description"] for step in plan["steps"]] for plan in plans]
    assert steps_of[1:] == [["look", "ask", "write"], ["only write"]]


@GATEWAY
@pytest.mark.slow
async def test_feedback_leads_to_another_plan_that_is_reviewed_again(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[PLAN]), Reply(calls=[PLAN]), Reply(text="done")]
    async with open_command_line(way, home, environ, script) as cli:
        shot = await cli.shot("report", "--plan-review", "always", *JSON)
        first = shot.rows[0]["questions"][0]["question_id"]
        again = await run(cli, "answer", first, "only one step", "--wait", *JSON)
        second = again.rows[0]["questions"][0]["question_id"]
        agreed = await run(cli, "answer", second, "好的", "--wait")
    assert (shot.code, again.code, agreed.code) == (6, 6, 0)
    assert second != first
    assert again.rows[0]["run_id"] == shot.rows[0]["run_id"]
    told = json.dumps(cli.model.requests[1]["messages"])
    assert "<plan_feedback>" in told
    assert "only one step" in told
    assert agreed.out == b"done\n"


@PROCESS
@pytest.mark.slow
async def test_rejected_plan_exits_with_4_and_is_inert(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[PLAN]), Reply(text="never")]
    async with open_command_line(way, home, environ, script) as cli:
        shot = await cli.shot("report", "--plan-review", "always", *JSON)
        question = shot.rows[0]["questions"][0]["question_id"]
        rejected = await run(cli, "answer", question, "no", "--wait", *JSON)
        events = await events_of(cli, shot.rows[0])
    assert rejected.code == 4
    assert (rejected.rows[0]["status"], rejected.rows[0]["stop_reason"]) == (
        "cancelled",
        "rejected",
    )
    assert event_names(events)[-1] == "result.cancelled"
    assert len(cli.model.requests) == 1


@GATEWAY
@pytest.mark.slow
async def test_one_shot_denies_calls_that_need_approval(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with open_command_line(
        way, home, environ, [Reply(calls=[TOUCH]), Reply(text="tried")]
    ) as cli:
        denied = await cli.shot("touch it", *JSON)
        assert not (cli.folder / "made").exists()
    assert (denied.code, denied.rows[0]["questions"]) == (4, [])
    assert "--allow 'shell(touch made)'" in denied.err


@pytest.mark.slow
async def test_detached_task_waits_for_approval_of_its_calls(
    home: Path, environ: dict[str, str]
) -> None:
    two = [TOUCH, Call("shell", {"command": "touch other"})]
    async with open_command_line(
        "gateway", home, environ, [Reply(calls=two), Reply(text="made it")]
    ) as cli:
        task_id = (await cli.shot("touch it", "--detach")).out.decode().strip()
        question = await wait_for_question(cli)
        listed = await run(cli, "questions")
        command = f"  larkspur answer {short_id(question['question_id'])} yes\n"
        assert f"{command}  instead of yes: session · rule" in listed.out.decode()
        assert (cli.folder / "made").exists() is False
        said = await run(cli, "answer", question["question_id"], "no", "--item", "1=yes")
        assert (said.code, said.out) == (0, b"")
        assert f"The run continues in the gateway: larkspur watch {short_id(task_id)}" in said.err
        watched = await run(cli, "watch", task_id)
        none = await run(cli, "questions", "--json")
    assert watched.code == 0, (watched.out, watched.err)
    assert "made it" in watched.out.decode()
    assert (cli.folder / "made").exists()
    assert not (cli.folder / "other").exists()
    assert json.loads(none.out) == []


@pytest.mark.slow
async def test_approval_with_a_rule_is_stored_and_can_be_removed(
    home: Path, environ: dict[str, str]
) -> None:
    script = [
        Reply(calls=[TOUCH]),
        Reply(text="made it"),
        Reply(calls=[TOUCH]),
        Reply(text="unasked"),
        Reply(calls=[TOUCH]),
        Reply(text="tried"),
    ]
    async with open_command_line("gateway", home, environ, script) as cli:
        await cli.shot("touch it", "--detach")
        question = (await wait_for_question(cli))["question_id"]
        ruled = await run(cli, "answer", question, "rule", "--wait")
        assert ruled.err == "Answer stored: yes, with a new rule: shell(touch made)\n"
        again = await cli.shot("once more")
        (rule,) = json.loads((await run(cli, "rules", "--json")).out)
        listed = await run(cli, "rules")
        removed = await run(cli, "rules", "remove", str(rule["number"]))
        missing = await run(cli, "rules", "remove", str(rule["number"]))
        denied = await cli.shot("and now")
        audit = json.loads((await run(cli, "audit", "--json")).out)
    assert (ruled.out, again.code, again.out) == (b"made it\n", 0, b"unasked\n")
    assert "shell(touch made)" in listed.out.decode()
    assert (removed.code, removed.err) == (0, "Removed: shell(touch made)\n")
    assert missing.code == 2
    assert denied.code == 4
    actions = [entry["action"] for entry in audit]
    assert actions == ["rule.removed", "question.answered", "rule.written", "question.asked"]
    assert {entry["principal"] for entry in audit if entry["action"] != "question.asked"} == {
        "local"
    }


@pytest.mark.slow
@PROCESS
async def test_refused_answer_changes_nothing(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[PLAN]), Reply(text="done")]
    async with open_command_line(way, home, environ, script) as cli:
        shot = await cli.shot("report", "--plan-review", "always", *JSON)
        question = shot.rows[0]["questions"][0]["question_id"]
        refused = {
            "unknown": await run(cli, "answer", "question-" + "0" * 27 + "-1", "yes"),
            "nothing": await run(cli, "answer", "zzz", "yes"),
            "no plan": await run(cli, "answer", question, "edit", "--step", " "),
            "no file": await run(cli, "answer", question, "edit", "--steps", "nowhere"),
            "for longer": await run(cli, "answer", question, "session"),
            "said": await run(cli, "say", shot.rows[0]["task_id"], "hurry up"),
        }
        for name, one in refused.items():
            assert (name, one.code, one.out) == (name, 2, b"")
            assert one.err.count("\n") == 1, one.err
        assert "no meaning for a plan" in refused["for longer"].err
        assert (
            refused["said"].err
            == f"The task waits for an answer: larkspur answer {short_id(question)} …\n"
        )
        (still,) = json.loads((await run(cli, "questions", "--json")).out)
        assert (still["question_id"], still["status"]) == (question, "open")
        agreed = await run(cli, "answer", question[-6:], "可以", "--wait")
        assert (agreed.code, agreed.out) == (0, b"done\n")
        late = await run(cli, "answer", question, "no")
    assert late.code == 2
    assert re.fullmatch(r"Already answered by you via \w+, [\d: -]+ UTC: approve.\n", late.err)


@GATEWAY
@pytest.mark.slow
async def test_expired_question_cannot_be_answered(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    environ |= {"LARKSPUR_AGENT__QUESTION_TTL_MINUTES": "1"}
    script = [Reply(calls=[ASK]), Reply(text="chose red myself")]
    async with open_command_line(way, home, environ, script) as cli:
        shot = await cli.shot("paint", *JSON)
        question = shot.rows[0]["questions"][0]["question_id"]
        for gateway in cli.gateways:
            gateway.kill()
            await gateway.wait()
        expire(home, question)
        late = await run(cli, "answer", question, "1")
    assert (shot.code, late.code, late.out) == (6, 2, b"")
    assert late.err == "The question has expired; nothing was run.\n"


@pytest.mark.slow
async def test_question_of_a_killed_gateway_is_answered_without_it(
    home: Path, environ: dict[str, str]
) -> None:
    script = Rules(
        [
            Reply(calls=[ASK], when=When(all_results=0)),
            Reply(text="painted it", when=When(last_result="red")),
        ]
    )
    async with open_command_line("gateway", home, environ, script) as cli:
        shot = await cli.shot("paint", *JSON)
        cli.gateways[0].kill()
        await cli.gateways[0].wait()
        question = shot.rows[0]["questions"][0]["question_id"]
        answered = await run(cli, "answer", question, "red")
        await cli.serve()
        events = await events_of(cli, shot.rows[0])
    assert (answered.code, answered.out, answered.err) == (
        0,
        b"painted it\n",
        "Answer stored: red\n",
    )
    assert event_names(events).count("result.final") == 1
    assert is_in_order(events)


@pytest.mark.slow
async def test_answer_of_a_killed_process_is_kept(home: Path, environ: dict[str, str]) -> None:
    script = Rules(
        [
            Reply(calls=[ASK], when=When(all_results=0)),
            Reply(text="painted it", hold="go", when=When(last_result="red")),
        ]
    )
    async with open_command_line("process", home, environ, script) as cli:
        shot = await cli.shot("paint", *JSON)
        question = shot.rows[0]["questions"][0]["question_id"]
        answering = await cli.start("answer", question, "1")
        await cli.model.until_asked(2)
        answering.send_signal(signal.SIGKILL)
        await answering.wait()
        cli.model.release("go")
        late = await run(cli, "answer", question, "2")
        stored = await cli.task(shot.rows[0]["task_id"])
    assert "Already answered by you via cli, " in late.err
    assert late.err.endswith(" UTC: text (red).\n")
    assert stored["status"] in {"running", "failed"}


@pytest.mark.slow
@PROCESS
async def test_stopped_task_is_resumed(way: str, home: Path, environ: dict[str, str]) -> None:
    async with open_command_line(
        way, home, environ, [Reply(hang=True), Reply(text="went on")]
    ) as cli:
        process = await cli.start("-p", "count to ten", *JSON)
        await cli.model.until_asked(1)
        process.send_signal(signal.SIGINT)
        out, _ = await process.communicate()
        stopped = json.loads(out)
        resumed = await run(cli, "resume", stopped["task_id"], *JSON)
        done = await run(cli, "resume", resumed.rows[0]["task_id"])
        nothing = await run(cli, "resume", "task-nothing")
    assert (resumed.code, resumed.rows[0]["text"]) == (0, "went on")
    assert resumed.rows[0]["session_id"] == stopped["session_id"]
    assert resumed.rows[0]["task_id"] != stopped["task_id"]
    assert (done.code, done.out) == (2, b"")
    assert nothing.code == 2


@GATEWAY
@pytest.mark.slow
async def test_failed_task_is_resumed_from_its_last_step(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    broken = Reply(fault=Fault("status", status=400, message="no such thing"))
    script = [Reply(calls=[TOUCH]), broken, Reply(text="went on")]
    async with open_command_line(way, home, environ, script) as cli:
        failed = await cli.shot("touch it", "--permission-mode", "all", *JSON)
        resumed = await run(cli, "resume", failed.rows[0]["task_id"], *JSON)
        request = json.dumps(cli.model.requests[-1]["messages"])
    assert (failed.code, failed.rows[0]["status"]) == (1, "failed")
    assert (resumed.code, resumed.rows[0]["text"]) == (0, "went on")
    assert request.count('"role": "tool"') == request.count("touch made") == 1


@GATEWAY
@pytest.mark.slow
async def test_waiting_task_is_watched_and_stopped(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with open_command_line(way, home, environ, [Reply(calls=[ASK])]) as cli:
        shot = await cli.shot("paint", *JSON)
        watching = await cli.start("watch", shot.rows[0]["task_id"])
        await until_line(watching, watching.stdout, b"Which colour?")
        await until_line(watching, watching.stdout, b"larkspur answer ")
        stopped = await run(cli, "stop", shot.rows[0]["task_id"])
        await watching.communicate()
        late = await run(cli, "answer", shot.rows[0]["questions"][0]["question_id"], "1")
        listed = json.loads((await run(cli, "questions", "--all", "--json")).out)
    assert (stopped.code, watching.returncode, late.code) == (0, 1, 2)
    assert "Already answered by you" in late.err
    assert [one["status"] for one in listed] == ["answered"]


@pytest.mark.slow
@PROCESS
async def test_pairing_code_is_printed_once_and_not_stored(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with open_command_line(way, home, environ, text_replies("x")) as cli:
        paired = await run(cli, "pair")
        code = paired.out.decode().strip()
        in_chinese = await run(in_chinese_locale(cli), "pair", "--role", "talk")
        people = await run(cli, "pair", "list", "--json")
        nobody = await run(cli, "pair", "remove", "ou_nobody")
        wrong = await run(cli, "pair", "remove")
        audit = (await run(cli, "audit", "--json")).out.decode()
    assert (paired.code, paired.out) == (0, f"{code}\n".encode())
    assert f"/pair {code}" in paired.err
    assert "within 10 minutes" in paired.err
    assert "answer questions and stop runs" in paired.err
    assert "10 分钟" in in_chinese.err
    assert json.loads(people.out) == []
    assert (nobody.code, wrong.code) == (2, 2)
    offered = [entry for entry in json.loads(audit) if entry["action"] == "pairing.offered"]
    assert [entry["target"] for entry in offered] == ["talk", "operate"]
    assert code not in audit
    assert code.encode() not in stored_bytes(home)


@pytest.mark.parametrize(
    "argv",
    [
        ["audit"],
        pytest.param(["rules"], marks=pytest.mark.slow),
        pytest.param(["pair", "list"], marks=pytest.mark.slow),
        pytest.param(["questions"], marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
async def test_empty_lists_print_nothing_to_standard_output(
    argv: list[str], home: Path, environ: dict[str, str]
) -> None:
    async with open_command_line("process", home, environ, text_replies()) as cli:
        looked = await run(cli, *argv)
    assert (looked.code, looked.out) == (0, b"")


def in_chinese_locale(cli: CliEnvironment) -> CliEnvironment:
    cli.environ = {**cli.environ, "LANG": "zh_CN.UTF-8"}
    return cli


async def wait_for_question(cli: CliEnvironment) -> dict[str, Any]:
    """Wait until a question is open and return it."""
    while True:
        found = await run(cli, "questions", "--json")
        for one in json.loads(found.out):
            question: dict[str, Any] = one
            return question


def stored_bytes(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


def expire(home: Path, question: str) -> None:
    """Set the expiry of a stored question to a past time."""
    with closing(sqlite3.connect(home / "larkspur.db")) as database, database:
        over = "2026-01-01T00:00:00.000Z"
        database.execute("update questions set expires = ? where id = ?", (over, question))
