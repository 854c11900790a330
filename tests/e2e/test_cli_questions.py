"""Questions to people from the command line: processes that ask, and other ones that answer."""

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

from tests.e2e.test_cli_oneshot import BOTH_WAYS, Place, Result, answers, place, until_line
from tests.support.scripted_model import Call, Reply, Rules, When

PLAN = Call("plan", {"goal": "a report", "steps": ["collect", "write"], "complexity": "complex"})
ASK = Call("request_user", {"question": "Which colour?", "options": ["red", "green"]})
TOUCH = Call("shell", {"command": "touch made"})
JSON = ("--output-format", "json")


async def run(there: Place, *argv: str, stdin: bytes | None = None) -> Result:
    process = await there.start(*argv, stdin=asyncio.subprocess.PIPE)
    out, err = await process.communicate(stdin or b"")
    return Result(process.returncode, out, err)


async def events_of(there: Place, result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a run as they are stored."""
    frames = await there.stream(result["session_id"])
    events = [json.loads(frame.data) for frame in frames]
    return [one for one in events if one["run_id"] == result["run_id"]]


def names(events: Sequence[dict[str, Any]]) -> list[str]:
    return [one["event"].removeprefix("workflow.") for one in events]


def in_order(events: Sequence[dict[str, Any]]) -> bool:
    seqs = [one["seq"] for one in events]
    return seqs == sorted({*seqs})


@BOTH_WAYS
async def test_a_question_waits_and_another_process_answers_it(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[ASK]), Reply(text="painted it")]
    async with place(way, home, environ, script) as there:
        shot = await there.shot("paint", *JSON)
        (asked,) = shot.rows[0]["questions"]
        question = asked["question_id"]
        answered = await run(there, "answer", question, "2", "--wait", *JSON)
        events = await events_of(there, shot.rows[0])
    assert (shot.code, shot.rows[0]["status"], answered.code) == (6, "waiting", 0)
    assert asked == {
        "question_id": question,
        "kind": "clarify",
        "title": "Which colour?",
        "options": ["red", "green"],
    }
    task = shot.rows[0]["task_id"]
    for word in (task, question, "Which colour?", "1. red", f"larkspur answer {question}"):
        assert word in shot.err
    assert answered.err == "Answer stored: green\n"
    assert answered.rows[0]["text"] == "painted it"
    assert answered.rows[0]["run_id"] == shot.rows[0]["run_id"]
    heard = names(events)
    assert [name for name in heard if name.startswith(("question", "result"))] == [
        "question.asked",
        "question.answered",
        "result.final",
    ]
    assert in_order(events)
    assert "green" in json.dumps(there.model.requests[-1]["messages"])


@BOTH_WAYS
async def test_a_plan_is_edited_by_a_file_and_its_tools_run_after_that(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[PLAN]), Reply(calls=[TOUCH]), Reply(text="done")]
    async with place(way, home, environ, script) as there:
        shot = await there.shot(
            "report", "--plan-review", "complex", "--permission-mode", "full", *JSON
        )
        (asked,) = shot.rows[0]["questions"]
        made = there.folder / "made"
        assert (shot.code, asked["kind"], made.exists()) == (6, "plan", False)
        steps = b"1. look\n2. ask\n\n3. write\n"
        first = asked["question_id"]
        edit = ("answer", first, "edit", "--steps", "-", "--wait", *JSON)
        edited = await run(there, *edit, stdin=steps)
        second = edited.rows[0]["questions"][0]["question_id"]
        assert (edited.code, second != first, made.exists()) == (6, True, False)
        agreed = await run(there, "answer", second, "yes", "--step", "only write", "--wait")
        events = await events_of(there, shot.rows[0])
    assert edited.err.startswith(
        "Answer stored: your plan, to be approved again: look → ask → write"
    )
    assert (agreed.code, agreed.out) == (0, b"done\n")
    assert made.exists()
    plans = [one["payload"] for one in events if one["event"] == "workflow.plan.updated"]
    assert [plan["version"] for plan in plans] == [1, 2, 3]
    steps_of = [[step["description"] for step in plan["steps"]] for plan in plans]
    assert steps_of[1:] == [["look", "ask", "write"], ["only write"]]


@BOTH_WAYS
async def test_feedback_makes_another_plan_that_is_asked_about_again(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[PLAN]), Reply(calls=[PLAN]), Reply(text="done")]
    async with place(way, home, environ, script) as there:
        shot = await there.shot("report", "--plan-review", "always", *JSON)
        first = shot.rows[0]["questions"][0]["question_id"]
        again = await run(there, "answer", first, "only one step", "--wait", *JSON)
        second = again.rows[0]["questions"][0]["question_id"]
        agreed = await run(there, "answer", second, "好的", "--wait")
    assert (shot.code, again.code, agreed.code) == (6, 6, 0)
    assert second != first
    assert again.rows[0]["run_id"] == shot.rows[0]["run_id"]
    told = json.dumps(there.model.requests[1]["messages"])
    assert "<plan_feedback>" in told
    assert "only one step" in told
    assert agreed.out == b"done\n"


@BOTH_WAYS
async def test_a_rejected_plan_ends_with_4_and_nothing_was_run(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[PLAN]), Reply(text="never")]
    async with place(way, home, environ, script) as there:
        shot = await there.shot("report", "--plan-review", "always", *JSON)
        question = shot.rows[0]["questions"][0]["question_id"]
        rejected = await run(there, "answer", question, "no", "--wait", *JSON)
        events = await events_of(there, shot.rows[0])
    assert rejected.code == 4
    assert (rejected.rows[0]["status"], rejected.rows[0]["stop_reason"]) == (
        "cancelled",
        "rejected",
    )
    assert names(events)[-1] == "result.cancelled"
    assert len(there.model.requests) == 1


@BOTH_WAYS
async def test_a_call_in_need_is_a_no_in_a_one_shot_even_where_people_are_asked(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with place(way, home, environ, [Reply(calls=[TOUCH]), Reply(text="tried")]) as there:
        denied = await there.shot("touch it", *JSON)
        assert not (there.folder / "made").exists()
    assert (denied.code, denied.rows[0]["questions"]) == (4, [])
    assert "--allow 'shell(touch made)'" in denied.err


async def test_a_detached_task_waits_for_a_yes_to_its_calls(
    home: Path, environ: dict[str, str]
) -> None:
    two = [TOUCH, Call("shell", {"command": "touch other"})]
    async with place("gateway", home, environ, [Reply(calls=two), Reply(text="made it")]) as there:
        task_id = (await there.shot("touch it", "--detach")).out.decode().strip()
        question = await until_asked(there)
        listed = await run(there, "questions")
        assert f"larkspur answer {question['question_id']} yes | session | rule" in (
            listed.out.decode()
        )
        assert (there.folder / "made").exists() is False
        said = await run(there, "answer", question["question_id"], "no", "--item", "1=yes")
        assert (said.code, said.out) == (0, b"")
        assert f"The run continues in the gateway: larkspur watch {task_id}" in said.err
        watched = await run(there, "watch", task_id)
        none = await run(there, "questions", "--json")
    assert watched.code == 0, watched.err
    assert "made it" in watched.out.decode()
    assert (there.folder / "made").exists()
    assert not (there.folder / "other").exists()
    assert json.loads(none.out) == []


async def test_a_yes_for_good_is_a_rule_that_can_be_taken_back(
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
    async with place("gateway", home, environ, script) as there:
        await there.shot("touch it", "--detach")
        question = (await until_asked(there))["question_id"]
        ruled = await run(there, "answer", question, "rule", "--wait")
        assert ruled.err == "Answer stored: yes, with a new rule: shell(touch made)\n"
        again = await there.shot("once more")
        (rule,) = json.loads((await run(there, "rules", "--json")).out)
        listed = await run(there, "rules")
        removed = await run(there, "rules", "remove", str(rule["number"]))
        missing = await run(there, "rules", "remove", str(rule["number"]))
        denied = await there.shot("and now")
        audit = json.loads((await run(there, "audit", "--json")).out)
    assert (ruled.out, again.code, again.out) == (b"made it\n", 0, b"unasked\n")
    assert "shell(touch made)" in listed.out.decode()
    assert (removed.code, removed.err) == (0, "Removed: shell(touch made)\n")
    assert missing.code == 2
    assert denied.code == 4
    actions = [deed["action"] for deed in audit]
    assert actions == ["rule.removed", "question.answered", "rule.written", "question.asked"]
    assert {deed["principal"] for deed in audit if deed["action"] != "question.asked"} == {"local"}


@BOTH_WAYS
async def test_what_is_no_answer_changes_nothing(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    script = [Reply(calls=[PLAN]), Reply(text="done")]
    async with place(way, home, environ, script) as there:
        shot = await there.shot("report", "--plan-review", "always", *JSON)
        question = shot.rows[0]["questions"][0]["question_id"]
        refused = {
            "unknown": await run(there, "answer", "question-" + "0" * 27 + "-1", "yes"),
            "nothing": await run(there, "answer", "zzz", "yes"),
            "no plan": await run(there, "answer", question, "edit", "--step", " "),
            "no file": await run(there, "answer", question, "edit", "--steps", "nowhere"),
            "for longer": await run(there, "answer", question, "session"),
            "said": await run(there, "say", shot.rows[0]["task_id"], "hurry up"),
        }
        for name, one in refused.items():
            assert (name, one.code, one.out) == (name, 2, b"")
            assert one.err.count("\n") == 1, one.err
        assert "no meaning for a plan" in refused["for longer"].err
        assert (
            refused["said"].err == f"The task waits for an answer: larkspur answer {question} …\n"
        )
        (still,) = json.loads((await run(there, "questions", "--json")).out)
        assert (still["question_id"], still["status"]) == (question, "open")
        agreed = await run(there, "answer", question[-6:], "可以", "--wait")
        assert (agreed.code, agreed.out) == (0, b"done\n")
        late = await run(there, "answer", question, "no")
    assert late.code == 2
    assert re.fullmatch(
        r"Already answered by local owner via \w+, [\d: -]+ UTC: approve.\n", late.err
    )


@BOTH_WAYS
async def test_an_expired_question_is_not_answered(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    environ |= {"LARKSPUR_AGENT__QUESTION_TTL_MINUTES": "1"}
    script = [Reply(calls=[ASK]), Reply(text="chose red myself")]
    async with place(way, home, environ, script) as there:
        shot = await there.shot("paint", *JSON)
        question = shot.rows[0]["questions"][0]["question_id"]
        for gateway in there.gateways:
            gateway.kill()
            await gateway.wait()
        past_due(home, question)
        late = await run(there, "answer", question, "1")
    assert (shot.code, late.code, late.out) == (6, 2, b"")
    assert late.err == "The question has expired; nothing was run.\n"


async def test_a_gateway_that_was_killed_has_its_question_answered_without_it(
    home: Path, environ: dict[str, str]
) -> None:
    script = Rules(
        [
            Reply(calls=[ASK], when=When(all_results=0)),
            Reply(text="painted it", when=When(last_result="red")),
        ]
    )
    async with place("gateway", home, environ, script) as there:
        shot = await there.shot("paint", *JSON)
        there.gateways[0].kill()
        await there.gateways[0].wait()
        question = shot.rows[0]["questions"][0]["question_id"]
        answered = await run(there, "answer", question, "red")
        await there.serve()
        events = await events_of(there, shot.rows[0])
    assert (answered.code, answered.out, answered.err) == (
        0,
        b"painted it\n",
        "Answer stored: red\n",
    )
    assert names(events).count("result.final") == 1
    assert in_order(events)


async def test_a_gateway_takes_over_what_a_killed_answerer_had_begun(
    home: Path, environ: dict[str, str]
) -> None:
    script = Rules(
        [
            Reply(calls=[ASK], when=When(all_results=0)),
            Reply(text="painted it", hold="go", when=When(last_result="red")),
        ]
    )
    async with place("process", home, environ, script) as there:
        shot = await there.shot("paint", *JSON)
        question = shot.rows[0]["questions"][0]["question_id"]
        answering = await there.start("answer", question, "1")
        await there.model.until_asked(2)
        answering.send_signal(signal.SIGKILL)
        await answering.wait()
        there.model.release("go")
        late = await run(there, "answer", question, "2")
        stored = await there.task(shot.rows[0]["task_id"])
    assert "Already answered by local owner via cli, " in late.err
    assert late.err.endswith(" UTC: text (red).\n")
    assert stored["status"] in {"running", "failed"}


@BOTH_WAYS
async def test_a_task_that_failed_goes_on(way: str, home: Path, environ: dict[str, str]) -> None:
    async with place(way, home, environ, [Reply(hang=True), Reply(text="went on")]) as there:
        process = await there.start("-p", "count to ten", *JSON)
        await there.model.until_asked(1)
        process.send_signal(signal.SIGINT)
        out, _ = await process.communicate()
        stopped = json.loads(out)
        resumed = await run(there, "resume", stopped["task_id"], *JSON)
        done = await run(there, "resume", resumed.rows[0]["task_id"])
        nothing = await run(there, "resume", "task-nothing")
    assert (resumed.code, resumed.rows[0]["text"]) == (0, "went on")
    assert resumed.rows[0]["session_id"] == stopped["session_id"]
    assert resumed.rows[0]["task_id"] != stopped["task_id"]
    assert (done.code, done.out) == (2, b"")
    assert nothing.code == 2


@BOTH_WAYS
async def test_a_waiting_task_is_shown_and_stopped(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with place(way, home, environ, [Reply(calls=[ASK])]) as there:
        shot = await there.shot("paint", *JSON)
        watching = await there.start("watch", shot.rows[0]["task_id"])
        await until_line(watching, watching.stdout, b"Which colour?")
        await until_line(watching, watching.stdout, b"larkspur answer question-")
        stopped = await run(there, "stop", shot.rows[0]["task_id"])
        await watching.communicate()
        late = await run(there, "answer", shot.rows[0]["questions"][0]["question_id"], "1")
        listed = json.loads((await run(there, "questions", "--all", "--json")).out)
    assert (stopped.code, watching.returncode, late.code) == (0, 1, 2)
    assert "Already answered by local" in late.err
    assert [one["status"] for one in listed] == ["answered"]


@BOTH_WAYS
async def test_a_code_is_printed_once_and_kept_nowhere(
    way: str, home: Path, environ: dict[str, str]
) -> None:
    async with place(way, home, environ, answers("x")) as there:
        paired = await run(there, "pair")
        code = paired.out.decode().strip()
        in_chinese = await run(zh(there), "pair", "--role", "talk")
        people = await run(there, "pair", "list", "--json")
        nobody = await run(there, "pair", "remove", "ou_nobody")
        wrong = await run(there, "pair", "remove")
        audit = (await run(there, "audit", "--json")).out.decode()
    assert (paired.code, paired.out) == (0, f"{code}\n".encode())
    assert f"/pair {code}" in paired.err
    assert "within 10 minutes" in paired.err
    assert "answer questions and stop runs" in paired.err
    assert "10 分钟" in in_chinese.err
    assert json.loads(people.out) == []
    assert (nobody.code, wrong.code) == (2, 2)
    offered = [deed for deed in json.loads(audit) if deed["action"] == "pairing.offered"]
    assert [deed["target"] for deed in offered] == ["talk", "operate"]
    assert code not in audit
    assert code.encode() not in all_that_is_stored(home)


@pytest.mark.parametrize("argv", [["audit"], ["rules"], ["pair", "list"], ["questions"]])
async def test_where_nothing_is_it_says_so(
    argv: list[str], home: Path, environ: dict[str, str]
) -> None:
    async with place("process", home, environ, answers()) as there:
        looked = await run(there, *argv)
    assert (looked.code, looked.out) == (0, b"")


def zh(there: Place) -> Place:
    there.environ = {**there.environ, "LANG": "zh_CN.UTF-8"}
    return there


async def until_asked(there: Place) -> dict[str, Any]:
    """Return the open question as soon as there is one."""
    while True:
        found = await run(there, "questions", "--json")
        for one in json.loads(found.out):
            question: dict[str, Any] = one
            return question


def all_that_is_stored(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


def past_due(home: Path, question: str) -> None:
    """Make a stored question one whose time is over."""
    with closing(sqlite3.connect(home / "larkspur.db")) as database, database:
        over = "2026-01-01T00:00:00.000Z"
        database.execute("update questions set expires = ? where id = ?", (over, question))
