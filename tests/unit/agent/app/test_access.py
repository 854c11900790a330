"""Roles are granted by pairing codes, and permission rules in answers."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from internal.agent.app.access import (
    Access,
    TooManyAttempts,
    WrongCode,
    add_rules,
    load_rules,
    remove_rule,
)
from internal.agent.domain.errors import Forbidden, NotFound
from internal.agent.domain.ids import QuestionId, RunId, SessionId, TaskId
from internal.agent.domain.permissions.rules import PermissionRule
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.domain.questions import Answer, Grant, Question, QuestionRecord
from internal.agent.store.database import Database, Row
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1, a_session, a_task

ANN, BOB = "lark:cli_a:ou_ann", "lark:cli_a:ou_bob"


class Hands:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 31, 8, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    def turn(self, **by: float) -> None:
        self.time += timedelta(**by)


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def access(database: Database, stores: Stores, hands: Hands) -> Access:
    return Access(database, stores, hands)


async def test_a_code_grants_its_role_once(access: Access) -> None:
    pairing = await access.create_code("operate", LOCAL_OWNER, "cli")
    code = pairing.code
    assert pairing.expires == "2026-01-31T08:10:00.000Z"
    assert await access.get_rights(ANN) == frozenset()
    assert (
        await access.redeem_code(f" {code[:4].lower()}-{code[4:]} ", ANN, "Ann", "lark")
        == "operate"
    )
    assert await access.get_rights(ANN) == {"talk", "operate"}
    with pytest.raises(WrongCode, match="already used"):
        await access.redeem_code(code, BOB, "Bob", "lark")
    assert await access.get_rights(BOB) == frozenset()


async def test_a_code_expires_after_ten_minutes(access: Access, hands: Hands) -> None:
    early = (await access.create_code("owner", LOCAL_OWNER, "cli")).code
    late = (await access.create_code("talk", LOCAL_OWNER, "cli")).code
    hands.turn(minutes=9, seconds=59)
    assert await access.redeem_code(late, ANN, "Ann", "lark") == "talk"
    hands.turn(seconds=1)
    with pytest.raises(WrongCode):
        await access.redeem_code(early, ANN, "Ann", "lark")
    assert await access.get_rights(ANN) == {"talk"}


async def test_of_two_people_with_one_code_one_is_refused(access: Access) -> None:
    code = (await access.create_code("operate", LOCAL_OWNER, "cli")).code

    async def attempt(who: str) -> bool:
        try:
            await access.redeem_code(code, who, who, "lark")
        except WrongCode:
            return False
        return True

    async with asyncio.TaskGroup() as tasks:
        attempts = [tasks.create_task(attempt(who)) for who in (ANN, BOB)]
    assert sorted(each.result() for each in attempts) == [False, True]


async def test_the_sixth_wrong_code_is_not_checked(access: Access, hands: Hands) -> None:
    code = (await access.create_code("operate", LOCAL_OWNER, "cli")).code
    for _ in range(5):
        with pytest.raises(WrongCode):
            await access.redeem_code("22222222", ANN, "Ann", "lark")
    with pytest.raises(TooManyAttempts, match="Wait ten minutes"):
        await access.redeem_code(code, ANN, "Ann", "lark")
    assert await access.get_rights(ANN) == frozenset()
    assert await access.redeem_code(code, BOB, "Bob", "lark") == "operate"
    hands.turn(minutes=10, seconds=1)
    fresh = (await access.create_code("talk", LOCAL_OWNER, "cli")).code
    assert await access.redeem_code(fresh, ANN, "Ann", "lark") == "talk"


async def test_twenty_wrong_codes_overall_block_pairing_for_ten_minutes(
    access: Access, hands: Hands
) -> None:
    code = (await access.create_code("operate", LOCAL_OWNER, "cli")).code
    for number in range(20):
        with pytest.raises(WrongCode):
            await access.redeem_code("22222222", f"lark:cli_a:ou_{number}", "", "lark")
    with pytest.raises(TooManyAttempts):
        await access.redeem_code(code, ANN, "Ann", "lark")
    hands.turn(minutes=10, seconds=1)
    fresh = (await access.create_code("operate", LOCAL_OWNER, "cli")).code
    assert await access.redeem_code(fresh, ANN, "Ann", "lark") == "operate"


async def test_wrong_codes_are_counted_across_restarts(
    database: Database, stores: Stores, hands: Hands
) -> None:
    for _ in range(5):
        with pytest.raises(WrongCode):
            await Access(database, stores, hands).redeem_code("22222222", ANN, "Ann", "lark")
    with pytest.raises(TooManyAttempts):
        await Access(database, stores, hands).redeem_code("22222222", ANN, "Ann", "lark")


async def test_a_smaller_role_does_not_reduce_rights(access: Access) -> None:
    for role in ("owner", "talk"):
        code = (await access.create_code(role, LOCAL_OWNER, "cli")).code
        assert await access.redeem_code(code, ANN, "Ann", "lark") == "owner"
    assert await access.get_rights(ANN) == {"talk", "operate", "owner"}


async def test_a_role_can_be_removed(access: Access) -> None:
    code = (await access.create_code("operate", LOCAL_OWNER, "cli")).code
    await access.redeem_code(code, ANN, "Ann", "lark")
    await access.remove_role(ANN, LOCAL_OWNER, "web")
    assert await access.get_rights(ANN) == frozenset()
    with pytest.raises(NotFound, match=ANN):
        await access.remove_role(ANN, LOCAL_OWNER, "web")


async def test_only_the_owner_creates_codes_and_removes_roles(access: Access) -> None:
    operator = Principal(ANN, roles=frozenset({"talk", "operate"}))
    with pytest.raises(Forbidden):
        await access.create_code("operate", operator, "lark")
    with pytest.raises(Forbidden):
        await access.remove_role(BOB, operator, "lark")


async def test_every_change_is_audited_and_no_code_is_stored(
    access: Access, database: Database, stores: Stores, select: Callable[[str], list[Row]]
) -> None:
    code = (await access.create_code("operate", LOCAL_OWNER, "cli")).code
    kept = select("select * from pairing_codes")
    assert len(kept) == 1
    assert code not in str(kept)
    with pytest.raises(WrongCode):
        await access.redeem_code("22222222", BOB, "Bob", "lark")
    await access.redeem_code(code, ANN, "Ann", "lark")
    await access.remove_role(ANN, LOCAL_OWNER, "web")
    assert select("select * from pairing_codes") == []
    entries = await database.read(partial(stores.audit.list_page, 10))
    assert [(entry.action, entry.principal, entry.via, entry.target) for entry in entries] == [
        ("person.removed", "local", "web", ANN),
        ("pairing.redeemed", ANN, "lark", ANN),
        ("pairing.refused", BOB, "lark", BOB),
        ("pairing.offered", "local", "cli", "operate"),
    ]
    assert code not in str(entries)


async def test_a_code_that_others_can_read_is_revoked(
    access: Access, database: Database, stores: Stores
) -> None:
    code = (await access.create_code("operate", LOCAL_OWNER, "cli")).code
    await access.revoke_code("22222222", ANN, "lark")
    await access.revoke_code(code, ANN, "lark")
    with pytest.raises(WrongCode):
        await access.redeem_code(code, BOB, "Bob", "lark")
    noted = await database.read(partial(stores.audit.list_page, 10))
    assert [entry.detail for entry in noted if entry.principal == ANN] == ["shown to others"]


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
    assert await database.read(partial(load_rules, stores, a_task())) == here
    assert (
        await database.read(partial(load_rules, stores, a_task("task-2", "session-2"))) == elsewhere
    )


async def test_a_stored_rule_that_cannot_be_parsed_is_skipped(
    database: Database, stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    broken = PermissionRule(0, QUESTION.rule_scope, "shell(", "local", "web", "", T0)
    await database.write(partial(stores.permission_rules.add, broken))
    await add(database, stores, "rule", "shell(ls)")
    assert await database.read(partial(load_rules, stores, a_task())) == ["shell(ls)"]
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
    assert await database.read(partial(load_rules, stores, a_task())) == []
    entries = await database.read(partial(stores.audit.list_page, 10))
    assert [entry.action for entry in entries] == ["rule.removed", "rule.written"]
