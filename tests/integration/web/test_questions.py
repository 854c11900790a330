"""Questions over HTTP, through the whole chain: the run pauses, is answered, and goes on."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from internal.agent.domain.answers import MAX_ANSWER_CHARS
from tests.support.agent_app import plan, sound
from tests.support.anthropic_server import Call, Reply, seen_in
from tests.support.working_web_app import WorkingWebApp, open_working_web_app

COLOURS = Call("request_user", {"question": "Which colour?", "options": ["red", "green", "blue"]})
MANY = Call("request_user", {**COLOURS.input, "multiple": True})
TOUCH = Call("shell", {"command": "touch ran"})


def named(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [each["payload"] for each in events if each["event"] == f"workflow.{name}"]


def read_by_model(app: WorkingWebApp) -> str:
    """Return the last tool result that the model received."""
    return seen_in(app.core.model.requests[-1]).last_result


def folder(home: Path, task: Any) -> Path:
    return home / "workspaces" / str(task.session_id)


async def open_ids(app: WorkingWebApp) -> list[str]:
    page = (await app.client.get("/api/questions?status=open")).json()
    return [question["question_id"] for question in page["questions"]]


async def test_a_question_contains_everything_needed_to_answer_it(home: Path) -> None:
    async with open_working_web_app(home, [Reply(calls=[MANY])]) as app:
        made = await app.task("paint it " * 100)
        question = await app.asked(made)
        page = (await app.client.get("/api/questions?status=open")).json()
        assert page == {"questions": [question], "next": None}
        task = (await app.client.get(f"/api/tasks/{made.task_id}")).json()
        assert (task["status"], task["run"]["status"]) == ("waiting", "waiting")
        assert question.pop("asked") < question.pop("expires")
        assert question.pop("question_id")
        schema = question.pop("answer_schema")
        assert schema["properties"]["choices"]["items"]["maximum"] == 3
        assert question == {
            "run_id": made.run_id,
            "task_id": made.task_id,
            "session_id": made.session_id,
            "channel": "web",
            "task": ("paint it " * 100)[:200],
            "kind": "clarify",
            "title": "Which colour?",
            "body": "",
            "options": ["red", "green", "blue"],
            "multiple": True,
            "reason_code": "",
            "asked_by": "",
            "asker_number": 0,
            "asker_role": "",
            "calls": [],
            "plan": None,
            "who": "operators",
            "status": "open",
            "may_answer": True,
            "answer": None,
        }


async def test_a_text_answer_resumes_the_same_run(home: Path) -> None:
    script = [Reply(calls=[MANY]), Reply(text="painted")]
    async with open_working_web_app(home, script) as app:
        made = await app.task("paint it")
        question = await app.asked(made)
        assert question["question_id"] in await open_ids(app)
        reply = await app.answer(question, decision="text", choices=[3, 1], text="and white")
        assert reply.status == 200
        answered = reply.json()
        assert answered["answer"].pop("at") >= question["asked"]
        assert answered["answer"] == {
            "decision": "text",
            "text": "blue; red; and white",
            "by": "local",
            "name": "local owner",
            "via": "web",
            "edit": None,
            "choices": [3, 1],
            "items": {},
            "grant": "once",
            "rules": [],
        }
        assert (answered["status"], answered["may_answer"]) == ("answered", False)
        events = await app.end_of(made)
        sound(events)
        assert events[-1]["payload"]["final_answer"] == "painted"
        assert "blue; red; and white" in read_by_model(app)
        shown = (await app.client.get(f"/api/questions/{question['question_id']}")).json()
        assert shown["status"] == "answered"
        assert shown["answer"]["text"] == "blue; red; and white"
        assert await open_ids(app) == []


async def test_a_call_runs_only_after_approval(home: Path) -> None:
    script = [Reply(calls=[plan()]), Reply(calls=[TOUCH]), Reply(text="done")]
    async with open_working_web_app(home, script) as app:
        made = await app.task("touch it")
        question = await app.asked(made)
        assert question["kind"] == "approval"
        (call,) = question["calls"]
        assert (call["tool"], call["risk"]) == ("shell", "exec")
        assert "touch ran" in call["what"]
        assert not (folder(home, made) / "ran").exists()
        assert (await app.answer(question, decision="approve")).status == 200
        sound(await app.end_of(made))
        assert (folder(home, made) / "ran").exists()


async def test_the_title_says_what_the_call_does(home: Path) -> None:
    def write(text: str) -> Reply:
        return Reply(calls=[Call("write_file", {"path": "notes.md", "content": text})])

    script = [Reply(calls=[plan()]), write("one"), write("two"), Reply(calls=[TOUCH]), Reply()]
    async with open_working_web_app(home, script) as app:
        made = await app.task()
        titles = ("Create notes.md?", "Change notes.md?", "Run `touch ran`?")
        for number, title in enumerate(titles, 1):
            question = await app.asked(made, number)
            assert question["title"] == title
            await app.answer(question, decision="approve")
        await app.end_of(made)


async def test_the_reason_of_a_rejection_is_passed_to_the_model(home: Path) -> None:
    script = [Reply(calls=[plan()]), Reply(calls=[TOUCH]), Reply(text="I left it")]
    async with open_working_web_app(home, script) as app:
        made = await app.task("touch it")
        question = await app.asked(made)
        reply = await app.answer(question, decision="text", text="not on a Friday")
        assert reply.json()["answer"]["decision"] == "reject"
        events = await app.end_of(made)
        sound(events)
        assert events[-1]["payload"]["final_answer"] == "I left it"
        assert "not on a Friday" in read_by_model(app)
        assert not (folder(home, made) / "ran").exists()


async def test_calls_of_one_question_are_answered_individually(home: Path) -> None:
    calls = [Call("shell", {"command": f"touch {name}"}) for name in ("one", "two", "three")]
    script = [Reply(calls=[plan()]), Reply(calls=calls), Reply(text="done")]
    async with open_working_web_app(home, script) as app:
        made = await app.task("touch them")
        question = await app.asked(made)
        one, two, _ = [call["call_id"] for call in question["calls"]]
        items = {one: True, two: False}
        assert (await app.answer(question, decision="approve", items=items)).status == 200
        sound(await app.end_of(made))
        assert sorted(path.name for path in folder(home, made).iterdir()) == [
            "input",
            "one",
            "output",
            "three",
        ]


async def test_a_granted_rule_applies_until_it_is_removed(home: Path) -> None:
    turn = [Reply(calls=[plan()]), Reply(calls=[TOUCH]), Reply(text="done")]
    async with open_working_web_app(home, turn * 3) as app:
        first = await app.task("touch it")
        question = await app.asked(first)
        offered = question["calls"][0]["rules"]
        assert offered
        reply = await app.answer(question, decision="approve", grant="rule")
        assert reply.json()["answer"]["rules"] == offered
        await app.end_of(first)
        (rule,) = (await app.client.get("/api/rules")).json()["rules"]
        assert (rule["rule"], rule["principal"], rule["via"]) == (offered[0], "local", "web")
        assert rule["question_id"] == question["question_id"]

        second = await app.task("touch it again")  # a session of its own
        assert named(await app.end_of(second), "question.asked") == []
        assert (folder(home, second) / "ran").exists()

        removed = await app.client.request("DELETE", f"/api/rules/{rule['number']}")
        assert (removed.status, removed.body) == (204, b"")
        assert (await app.client.get("/api/rules")).json() == {"rules": []}
        again = await app.client.request("DELETE", f"/api/rules/{rule['number']}")
        assert again.status == 404
        third = await app.task("touch it once more")
        asked = await app.asked(third)
        assert (await app.answer(asked, decision="reject")).status == 200
        await app.end_of(third)
        assert not (folder(home, third) / "ran").exists()


async def test_a_plan_is_revised_edited_and_then_executed(home: Path) -> None:
    script = [
        Reply(calls=[plan("guess", title="A guess")]),
        Reply(calls=[plan("look", "write", title="With care")]),
        Reply(calls=[TOUCH]),
        Reply(text="done"),
    ]
    async with open_working_web_app(home, script) as app:
        options = {"permission_mode": "all"}
        made = await app.task("think first", plan_review="always", options=options)
        first = await app.asked(made)
        assert (first["kind"], first["title"]) == ("plan", "A guess")
        assert [step["description"] for step in first["plan"]["steps"]] == ["guess"]
        assert (await app.answer(first, decision="text", text="look first")).status == 200

        second = await app.asked(made, 2)
        assert second["run_id"] == first["run_id"] == made.run_id
        assert second["question_id"] != first["question_id"]
        assert "<plan_feedback>" in read_by_model(app)
        assert "look first" in read_by_model(app)
        assert [step["description"] for step in second["plan"]["steps"]] == ["look", "write"]
        assert not (folder(home, made) / "ran").exists()
        edit = {"steps": ["look twice", " write "], "goal": "to be sure"}
        reply = await app.answer(second, decision="edit", edit=edit)
        assert reply.status == 200
        assert reply.json()["answer"]["edit"] == {
            "steps": ["look twice", "write"],
            "goal": "to be sure",
        }
        third = await app.asked(made, 3)
        assert third["plan"]["version"] == 3
        assert not (folder(home, made) / "ran").exists()
        assert (await app.answer(third, decision="approve")).status == 200
        events = await app.end_of(made)
        sound(events)
        assert (folder(home, made) / "ran").exists()
        check_versions(events)


def check_versions(events: list[dict[str, Any]]) -> None:
    """The person's plan is the last version, and nothing ran before the last answer."""
    plans = named(events, "plan.updated")
    assert sorted({each["version"] for each in plans}) == [1, 2, 3]
    assert [step["description"] for step in plans[-1]["steps"]] == ["look twice", "write"]
    assert plans[-1]["goal"] == "to be sure"
    names = [each["event"] for each in events]
    last_answer = len(names) - names[::-1].index("workflow.question.answered")
    assert "workflow.tool.started" not in names[:last_answer]


async def test_a_rejected_plan_ends_the_run_and_no_tool_ran(home: Path) -> None:
    script = [Reply(calls=[plan("drop the tables")])]
    async with open_working_web_app(home, script) as app:
        made = await app.task("clean up", options={"plan_review": "always"})
        question = await app.asked(made)
        assert (await app.answer(question, decision="reject", text="no!")).status == 200
        events = await app.end_of(made)
        sound(events)
        assert events[-1]["event"] == "workflow.result.cancelled"
        assert named(events, "tool.started") == []
        task = (await app.client.get(f"/api/tasks/{made.task_id}")).json()
        assert (task["status"], task["stop_reason"]) == ("cancelled", "rejected")


async def test_plan_review_can_be_set_per_task_but_not_twice(home: Path) -> None:
    async with open_working_web_app(home, [Reply(text="hi")]) as app:
        body = {"task": "x", "plan_review": "always", "options": {"plan_review": "off"}}
        refused = await app.client.post("/api/tasks", body)
        assert refused.status == 400
        assert "plan_review" in refused.error["message"]
        unknown = await app.client.post("/api/tasks", {"task": "x", "plan_review": "maybe"})
        assert unknown.status == 400
        assert "$.plan_review" in unknown.error["message"]
        body = {"task": "x", "plan_review": "off", "options": {"plan_review": "off"}}
        assert (await app.client.post("/api/tasks", body)).status == 201


async def test_calls_that_need_approval_are_denied_without_approvals(home: Path) -> None:
    script = [Reply(calls=[plan()]), Reply(calls=[TOUCH]), Reply(text="could not")]
    async with open_working_web_app(home, script) as app:
        made = await app.task("touch it", options={"approvals": False})
        events = await app.end_of(made)
        sound(events)
        assert named(events, "question.asked") == []
        assert not (folder(home, made) / "ran").exists()


ANY_KIND: list[tuple[object, str]] = [
    (b"", "not valid JSON"),
    (b"yes", "not valid JSON"),
    ([], "Expected"),
    ({}, "decision"),
    ({"decision": "maybe"}, "$.decision"),
    ({"decision": None}, "$.decision"),
    ({"decision": "approve", "force": True}, "force"),
    (b'{"decision":"reject","decision":"approve"}', "decision"),
    ({"decision": "approve", "text": 1}, "$.text"),
    ({"decision": "text", "text": "x" * (MAX_ANSWER_CHARS + 1)}, "$.text"),
    ({"decision": "text", "text": " \n"}, "empty"),
    ({"decision": "approve", "items": {"call-x": True}}, ""),
    ({"decision": "approve", "items": {"call-x": "yes"}}, "$.items"),
    ({"decision": "approve", "grant": "always"}, "$.grant"),
    ({"decision": "approve", "choices": ["1"]}, "$.choices"),
    ({"decision": "edit"}, ""),
    ({"decision": "reject", "edit": {"steps": ["a"]}}, "edit"),
    ({"decision": "edit", "edit": {"steps": "a"}}, "$.edit.steps"),
    ({"decision": "edit", "edit": {"goal": "a"}}, "steps"),
    ({"decision": "edit", "edit": {"steps": ["a"], "version": 9}}, "version"),
]
PLAN: list[tuple[object, str]] = [
    ({"decision": "edit", "edit": {"steps": []}}, "$.edit.steps"),
    ({"decision": "edit", "edit": {"steps": ["a", " "]}}, "$.edit.steps"),
    ({"decision": "edit", "edit": {"steps": ["a"] * 51}}, "$.edit.steps"),
    ({"decision": "edit", "edit": {"steps": ["x" * 4001]}}, "$.edit.steps"),
    ({"decision": "approve", "choices": [1]}, "choices"),
    ({"decision": "approve", "grant": "session"}, "grant"),
]
WORDS: list[tuple[object, str]] = [
    ({"decision": "text", "choices": [0]}, "$.choices"),
    ({"decision": "text", "choices": [4]}, "1 to 3"),
    ({"decision": "text", "choices": [1, 2]}, "one option"),
    ({"decision": "edit"}, "Only a plan"),
    ({"decision": "edit", "edit": {"steps": ["a"]}}, "edit has no meaning"),
    ({"decision": "approve", "rules": ["shell(ls)"]}, "rules"),
]
CALLS: list[tuple[object, str]] = [
    ({"decision": "edit"}, "cannot be edited"),
    ({"decision": "approve", "edit": {"steps": ["a"]}}, "edit has no meaning"),
    ({"decision": "approve", "choices": [1]}, "choices"),
    ({"decision": "approve", "rules": ["shell(touch *)"]}, "grant"),
    ({"decision": "approve", "grant": "rule", "rules": ["shell("]}, ""),
    ({"decision": "approve", "grant": "rule", "rules": ["shell(*)"]}, ""),
    ({"decision": "approve", "grant": "rule", "rules": ["x"] * 21}, "$.rules"),
]


async def refused(app: WorkingWebApp, question: Any, table: Sequence[tuple[object, str]]) -> None:
    path = f"/api/questions/{question['question_id']}"
    for body, word in table:
        reply = await app.client.post(f"{path}/answer", body)
        assert reply.status == 400, (body, reply)
        assert reply.error["code"] == "malformed"
        assert word in reply.error["message"], (body, reply.error)
        assert len(reply.body) < 1000
    assert (await app.client.get(path)).json() == question


async def test_an_invalid_plan_answer_is_rejected_and_changes_nothing(home: Path) -> None:
    script = [Reply(calls=[plan()]), Reply(text="done")]
    async with open_working_web_app(home, script) as app:
        made = await app.task("plan it", plan_review="always")
        question = await app.asked(made)
        before = len(await app.core.durable(made))
        await refused(app, question, [*ANY_KIND, *PLAN])
        assert len(await app.core.durable(made)) == before
        assert (await app.answer(question, decision="approve")).status == 200
        sound(await app.end_of(made))


async def test_an_invalid_clarify_answer_is_rejected_and_changes_nothing(home: Path) -> None:
    async with open_working_web_app(home, [Reply(calls=[COLOURS]), Reply(text="ok")]) as app:
        made = await app.task("paint")
        question = await app.asked(made)
        before = len(await app.core.durable(made))
        await refused(app, question, [*ANY_KIND, *WORDS])
        assert len(await app.core.durable(made)) == before
        # words where an option was wanted are an answer, not an error
        assert (await app.answer(question, decision="text", text="mauve")).status == 200
        sound(await app.end_of(made))
        assert "mauve" in read_by_model(app)


async def test_an_invalid_approval_is_rejected_and_is_inert(home: Path) -> None:
    script = [Reply(calls=[plan()]), Reply(calls=[TOUCH]), Reply(text="done")]
    async with open_working_web_app(home, script) as app:
        made = await app.task("touch it")
        question = await app.asked(made)
        before = len(await app.core.durable(made))
        await refused(app, question, [*ANY_KIND, *CALLS])
        assert len(await app.core.durable(made)) == before
        assert not (folder(home, made) / "ran").exists()
        assert (await app.client.get("/api/rules")).json() == {"rules": []}
        assert (await app.answer(question, decision="reject")).status == 200
        sound(await app.end_of(made))


async def test_one_of_two_hundred_concurrent_answers_is_accepted(home: Path) -> None:
    script = [Reply(calls=[COLOURS]), Reply(text="ok")]
    async with open_working_web_app(home, script) as app:
        made = await app.task("paint")
        question = await app.asked(made)
        words = [f"colour {number}" for number in range(200)]
        async with asyncio.TaskGroup() as tasks:
            answering = [
                tasks.create_task(app.answer(question, decision="text", text=word))
                for word in words
            ]
        replies = [task.result() for task in answering]
        assert Counter(reply.status for reply in replies) == {200: 1, 409: 199}
        won = words[[reply.status for reply in replies].index(200)]
        late = [reply.error["message"] for reply in replies if reply.status == 409]
        shown = (await app.client.get(f"/api/questions/{question['question_id']}")).json()
        assert shown["answer"]["text"] == won
        day, minute = shown["answer"]["at"][:10], shown["answer"]["at"][11:16]
        how = f"Already answered by you via web, {day} {minute} UTC: text ({won})."
        assert set(late) == {how}
        events = await app.end_of(made)
        sound(events)
        assert [each["text"] for each in named(events, "question.answered")] == [won]
        assert won in read_by_model(app)


async def test_one_of_two_concurrent_decisions_is_accepted(home: Path) -> None:
    script = [Reply(calls=[plan()]), Reply(calls=[TOUCH]), Reply(text="done")]
    async with open_working_web_app(home, script) as app:
        made = await app.task("touch it")
        question = await app.asked(made)
        async with asyncio.TaskGroup() as tasks:
            yes = tasks.create_task(app.answer(question, decision="approve"))
            no = tasks.create_task(app.answer(question, decision="reject"))
        assert sorted((yes.result().status, no.result().status)) == [200, 409]
        sound(await app.end_of(made))
        assert (folder(home, made) / "ran").exists() is (yes.result().status == 200)


async def test_a_question_can_be_answered_after_a_restart(home: Path) -> None:
    async with open_working_web_app(home, [Reply(calls=[plan()]), Reply(calls=[TOUCH])]) as app:
        made = await app.task("touch it")
        question = await app.asked(made)
    async with open_working_web_app(home, [Reply(text="done")]) as app:
        shown = (await app.client.get(f"/api/questions/{question['question_id']}")).json()
        assert shown == question
        assert (await app.answer(question, decision="approve")).status == 200
        events = await app.end_of(made)
        sound(events)
        assert {each["run_id"] for each in events} == {made.run_id}
        assert events[-1]["payload"]["final_answer"] == "done"
        assert (folder(home, made) / "ran").exists()


async def test_stopping_a_run_closes_its_question(home: Path) -> None:
    async with open_working_web_app(home, [Reply(calls=[COLOURS])]) as app:
        made = await app.task("paint")
        question = await app.asked(made)
        assert (await app.client.post(f"/api/tasks/{made.task_id}/stop")).status == 200
        sound(await app.end_of(made))
        shown = (await app.client.get(f"/api/questions/{question['question_id']}")).json()
        assert (shown["status"], shown["may_answer"]) == ("answered", False)
        assert (shown["answer"]["decision"], shown["answer"]["by"]) == ("reject", "local")
        late = await app.answer(question, decision="text", text="red")
        assert late.status == 409
        assert late.error["code"] == "conflict"
        assert await open_ids(app) == []


async def test_an_expired_question_is_rejected_and_denies_the_call(home: Path) -> None:
    script = [Reply(calls=[plan()]), Reply(calls=[TOUCH]), Reply(text="nobody was there")]
    async with open_working_web_app(home, script) as app:
        made = await app.task("touch it")
        question = await app.asked(made)
        await change(
            home, "update questions set expires = asked where id = ?", question["question_id"]
        )
        late = await app.answer(question, decision="approve")
        assert late.status == 409
        assert "expired" in late.error["message"]
        dispatcher = app.core.services.dispatcher
        assert await dispatcher._recovery.expire_questions() == 1  # not waiting for its turn
        dispatcher.wake()
        sound(await app.end_of(made))
        shown = (await app.client.get(f"/api/questions/{question['question_id']}")).json()
        assert (shown["status"], shown["may_answer"]) == ("expired", False)
        assert (shown["answer"]["decision"], shown["answer"]["via"]) == ("expired", "the clock")
        late = await app.answer(question, decision="approve")
        assert late.status == 409
        assert "expired" in late.error["message"]
        assert "nobody answered in time" in read_by_model(app)
        assert not (folder(home, made) / "ran").exists()


async def change(home: Path, statement: str, *values: str) -> None:
    """Change the database behind the gateway's back."""

    def work() -> None:
        with closing(sqlite3.connect(home / "larkspur.db")) as database, database:
            assert database.execute(statement, values).rowcount == 1

    await asyncio.to_thread(work)


async def test_question_pages_have_no_gaps_and_no_duplicates(home: Path) -> None:
    script = [Reply(calls=[COLOURS], times=5)]
    async with open_working_web_app(home, script) as app:
        made = [await app.task(f"paint {number}") for number in range(5)]
        questions = [await app.asked(one) for one in made]
        await app.client.post(f"/api/tasks/{made[0].task_id}/stop")
        seen: list[str] = []
        cursor = ""
        while True:
            page = (await app.client.get(f"/api/questions?limit=2{cursor}")).json()
            seen += [question["question_id"] for question in page["questions"]]
            if page["next"] is None:
                break
            cursor = f"&cursor={page['next']}"
        newest_first = sorted(questions, key=lambda each: (each["asked"], each["question_id"]))
        assert seen == [question["question_id"] for question in reversed(newest_first)]
        assert sorted(await open_ids(app)) == sorted(
            question["question_id"] for question in questions[1:]
        )
        mine = await app.client.get(f"/api/questions?session_id={made[3].session_id}")
        assert [each["task_id"] for each in mine.json()["questions"]] == [made[3].task_id]
        for query in ("cursor=", "status=asked", "limit=0", "limit=501", "kind=plan"):
            assert (await app.client.get(f"/api/questions?{query}")).status == 400, query
        gone = await app.client.get("/api/questions?session_id=session-x")
        assert gone.json() == {"questions": [], "next": None}


async def test_a_stopped_task_is_resumed_as_a_new_one(home: Path) -> None:
    script = [Reply(calls=[COLOURS]), Reply(text="painted it red")]
    async with open_working_web_app(home, script) as app:
        made = await app.task("paint")
        await app.asked(made)
        path = f"/api/tasks/{made.task_id}/resume"
        waiting = await app.client.post(path)
        assert waiting.status == 409
        assert waiting.error["code"] == "conflict"
        await app.client.post(f"/api/tasks/{made.task_id}/stop")
        await app.end_of(made)
        assert (await app.client.post(path, {"from": 1})).status == 400
        reply = await app.client.post(path)
        assert reply.status == 201
        resumed = reply.json()
        assert set(resumed) == {"task_id", "run_id", "session_id", "status"}
        assert resumed["session_id"] == made.session_id
        assert resumed["task_id"] != made.task_id
        await app.core.until(
            made.session_id,
            lambda each: (
                each["run_id"] == resumed["run_id"] and each["event"] == "workflow.result.final"
            ),
        )
        shown = (await app.client.get(f"/api/tasks/{resumed['task_id']}")).json()
        assert shown["run"]["answer"] == "painted it red"
        assert (await app.client.post("/api/tasks/task-x/resume")).status == 404
