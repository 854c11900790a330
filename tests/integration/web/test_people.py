"""People over HTTP: visible questions, granted roles and the audit log."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.runs.creation import Submission, Submitted
from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.domain.errors import Forbidden, NotFound
from internal.agent.domain.events.envelope import rfc3339
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.channels.web.routes import people, questions, tasks
from internal.channels.web.routes.people import AuditQuery, CreatePairingRequest
from internal.channels.web.routes.questions import AnswerRequest, QuestionsQuery
from tests.support.anthropic_server import Call as ToolCall
from tests.support.anthropic_server import Reply
from tests.support.web_people import call_of
from tests.support.working_web_app import WorkingWebApp, open_working_web_app

COLOUR = ToolCall("request_user", {"question": "Which colour?"})
ASKER = Principal("lark:cli_a1:ou_asker", "Ada", frozenset({"talk"}))
OPERATOR = Principal("lark:cli_a1:ou_operator", "Odo", frozenset({"talk", "operate"}))


@pytest.fixture
async def app(home: Path) -> AsyncGenerator[WorkingWebApp]:
    script = [Reply(calls=[COLOUR]), Reply(text="painted")]
    async with open_working_web_app(home, script) as opened:
        yield opened


async def given_by(app: WorkingWebApp, principal: Principal, **fields: Any) -> Submitted:
    spec = build_run_spec(app.services.defaults, TaskOptions(), principal)
    return await app.services.gateway.submit(Submission("x", spec, "lark", **fields), principal)


async def test_a_question_is_visible_to_the_owner_and_the_author_of_the_task(
    app: WorkingWebApp,
) -> None:
    made = await given_by(app, ASKER)
    question_id = (await app.asked(made))["question_id"]

    async def listed(principal: Principal) -> list[str]:
        page = await questions.list_questions(call_of(app, principal, QuestionsQuery()))
        return [one.question_id for one in page.questions]

    assert await listed(LOCAL_OWNER) == await listed(ASKER) == [question_id]
    assert await listed(OPERATOR) == []
    body = AnswerRequest("text", "red")
    with pytest.raises(NotFound):
        await questions.show_question(call_of(app, OPERATOR, question_id=question_id))
    with pytest.raises(NotFound):
        await questions.answer_question(call_of(app, OPERATOR, body=body, question_id=question_id))
    with pytest.raises(NotFound):
        await tasks.resume_task(call_of(app, OPERATOR, task_id=made.task_id))
    seen = await questions.show_question(call_of(app, ASKER, question_id=question_id))
    assert (seen.who, seen.channel, seen.may_answer) == ("operators", "lark", False)
    with pytest.raises(Forbidden):
        await questions.answer_question(call_of(app, ASKER, body=body, question_id=question_id))
    shown = (await app.client.get(f"/api/questions/{question_id}")).json()
    assert (shown["status"], shown["may_answer"]) == ("open", True)
    reply = await app.answer(shown, decision="text", text="red")
    assert reply.json()["answer"]["by"] == "local"
    await app.end_of(made)


async def test_the_asked_person_can_answer_in_a_direct_chat(app: WorkingWebApp) -> None:
    made = await given_by(app, ASKER, direct=True)
    question_id = (await app.asked(made))["question_id"]
    seen = await questions.show_question(call_of(app, ASKER, question_id=question_id))
    assert (seen.who, seen.may_answer) == ("asker", True)
    body = AnswerRequest("text", "red")
    answered = await questions.answer_question(
        call_of(app, ASKER, body=body, question_id=question_id)
    )
    assert answered.answer is not None
    assert (answered.answer.by, answered.answer.name) == (ASKER.id, "Ada")
    late = await app.answer({"question_id": question_id}, decision="text", text="blue")
    assert late.status == 409
    assert "Ada" in late.error["message"]
    assert "red" in late.error["message"]
    await app.end_of(made)


async def test_a_pairing_code_grants_a_role_that_the_owner_can_revoke(app: WorkingWebApp) -> None:
    client = app.client
    made = await client.post("/api/pairings", {"role": "operate"})
    assert made.status == 201
    offered = made.json()
    assert set(offered) == {"code", "expires"}
    assert offered["expires"] > rfc3339(datetime.now(UTC))
    access = app.services.gateway.access
    assert await access.redeem_code(offered["code"], OPERATOR.id, "Odo", "lark") == "operate"
    with pytest.raises(Forbidden):
        await access.redeem_code(offered["code"], ASKER.id, "Ada", "lark")
    (person,) = (await client.get("/api/people")).json()["people"]
    assert person.pop("created") <= rfc3339(datetime.now(UTC))
    assert person == {
        "principal": OPERATOR.id,
        "name": "Odo",
        "role": "operate",
        "via": "lark",
    }
    removed = await client.request("DELETE", f"/api/people/{OPERATOR.id.replace(':', '%3A')}")
    assert (removed.status, removed.body) == (204, b"")
    assert (await client.get("/api/people")).json() == {"people": []}
    assert await access.get_rights(OPERATOR.id) == frozenset()
    again = await client.request("DELETE", f"/api/people/{OPERATOR.id}")
    assert again.status == 404

    entries = (await client.get("/api/audit")).json()["entries"]
    assert [(entry["action"], entry["principal"], entry["via"]) for entry in entries] == [
        ("person.removed", "local", "web"),
        ("pairing.refused", ASKER.id, "lark"),
        ("pairing.redeemed", OPERATOR.id, "lark"),
        ("pairing.offered", "local", "web"),
    ]
    assert offered["code"] not in str(entries)
    newest = (await client.get("/api/audit?limit=1")).json()["entries"]
    assert newest == entries[:1]


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (None, "JSON"),
        ({}, "role"),
        ({"role": "king"}, "$.role"),
        ({"role": ["operate"]}, "$.role"),
        ({"role": "talk", "code": "AAAAAAAA"}, "code"),
    ],
)
async def test_an_invalid_pairing_is_rejected(app: WorkingWebApp, body: object, word: str) -> None:
    reply = await app.client.post("/api/pairings", body)
    assert reply.status == 400
    assert word in reply.error["message"]
    assert (await app.client.get("/api/audit")).json() == {"entries": []}


@pytest.mark.parametrize("query", ["limit=0", "limit=501", "limit=x", "cursor=1", "colour=red"])
async def test_an_invalid_audit_parameter_is_rejected(app: WorkingWebApp, query: str) -> None:
    reply = await app.client.get(f"/api/audit?{query}")
    assert reply.status == 400
    assert reply.error["code"] == "malformed"


@pytest.mark.parametrize("number", ["0", "-1", "1.5", "9" * 30])
async def test_an_unknown_rule_is_not_found(app: WorkingWebApp, number: str) -> None:
    reply = await app.client.request("DELETE", f"/api/rules/{number}")
    assert reply.status == 404
    assert len(reply.error["message"]) < 200


async def test_answers_and_stops_are_recorded_in_the_audit_log(app: WorkingWebApp) -> None:
    made = await app.task("paint")
    question = await app.asked(made)
    await app.answer(question, decision="text", text="red")
    await app.end_of(made)
    entries = (await app.client.get("/api/audit")).json()["entries"]
    assert [(entry["action"], entry["target"]) for entry in reversed(entries)] == [
        ("question.asked", question["question_id"]),
        ("question.answered", question["question_id"]),
    ]


@pytest.mark.parametrize("principal", [ASKER, OPERATOR], ids=["asker", "operator"])
async def test_only_the_owner_manages_roles_and_reads_the_audit_log(
    app: WorkingWebApp, principal: Principal
) -> None:
    await app.client.post("/api/pairings", {"role": "talk"})
    before = (await app.client.get("/api/audit")).json()
    with pytest.raises(Forbidden):
        await people.create_pairing(call_of(app, principal, body=CreatePairingRequest("owner")))
    with pytest.raises(Forbidden):
        await people.list_people(call_of(app, principal))
    with pytest.raises(Forbidden):
        await people.remove_person(call_of(app, principal, principal="lark:cli_a1:ou_x"))
    with pytest.raises(Forbidden):
        await people.list_audit_entries(call_of(app, principal, AuditQuery()))
    with pytest.raises(Forbidden):
        await people.list_rules(call_of(app, principal))
    with pytest.raises(NotFound):
        await people.remove_rule(call_of(app, principal, number="1"))
    assert (await app.client.get("/api/audit")).json() == before
