"""Permission rules that answers added, on a real database."""

from functools import partial

import pytest

from internal.agent.app.runs.permission_rules import add_rules, load_rules, remove_rule
from internal.agent.domain.errors import NotFound
from internal.agent.domain.ids import QuestionId, RunId, SessionId, TaskId
from internal.agent.domain.permissions.rules import PermissionRule
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.domain.questions import Answer, Grant, Question, QuestionRecord
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1, a_session, a_task

QUESTION = QuestionRecord(
    Question(QuestionId("question-1"), "approval", "Allow?"), RunId("run-1"), TaskId("task-1"),
    SessionId("session-1"), "local", "", "operators", T0, T1,
)  # fmt: skip


async def add(database: Database, stores: Stores, grant: Grant, *rules: str) -> None:
    answer = Answer(QuestionId("question-1"), "approve", "local", "web", grant=grant, rules=rules)
    await database.write(lambda: stores.sessions.add(a_session()))
    await database.write(partial(add_rules, stores, QUESTION, answer))


@pytest.mark.parametrize(
    ("grant", "here", "elsewhere"),
    [("once", [], []), ("session", ["shell(ls)"], []), ("rule", ["shell(ls)"], ["shell(ls)"])],
)
async def test_a_rule_applies_to_its_session_or_to_all_tasks_from_its_place(
    database: Database, stores: Stores, grant: Grant, here: list[str], elsewhere: list[str]
) -> None:
    await add(database, stores, grant, "shell(ls)")
    assert await load_rules(database, stores, a_task()) == here
    assert await load_rules(database, stores, a_task("task-2", "session-2")) == elsewhere


async def test_a_stored_rule_that_cannot_be_parsed_is_skipped(
    database: Database, stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    broken = PermissionRule(0, QUESTION.rule_scope, "shell(", "local", "web", "", T0)
    await database.write(partial(stores.permission_rules.add, broken))
    await add(database, stores, "rule", "shell(ls)")
    assert await load_rules(database, stores, a_task()) == ["shell(ls)"]
    assert "stored rule skipped" in caplog.text


async def test_only_the_owner_removes_a_rule_and_the_audit_log_has_it(
    database: Database, stores: Stores
) -> None:
    await add(database, stores, "rule", "shell(ls)")
    [stored] = await database.read(partial(stores.permission_rules.list_page, 10))
    number = stored.number
    operator = Principal("lark:app:ou_1", roles=frozenset({"talk", "operate"}))
    for principal, wanted in ((operator, number), (LOCAL_OWNER, number + 1)):
        with pytest.raises(NotFound, match="no rule"):
            await database.write(partial(remove_rule, stores, wanted, principal, via="web", now=T1))

    removed = await database.write(
        partial(remove_rule, stores, number, LOCAL_OWNER, via="web", now=T1)
    )
    assert removed.rule == "shell(ls)"
    assert await load_rules(database, stores, a_task()) == []
    entries = await database.read(partial(stores.audit.list_page, 10))
    assert [entry.action for entry in entries] == ["rule.removed", "rule.written"]
