"""Recipients of copies of a question that nobody in its chat may answer."""

from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.runs.question_recipients import (
    MAX_RECIPIENTS,
    ChatOperators,
    QuestionRecipients,
)
from internal.agent.domain.ids import QuestionId, RunId, SessionId, TaskId
from internal.agent.domain.principals import Right, RoleAssignment
from internal.agent.domain.questions import Audience, Question, QuestionRecord
from internal.agent.domain.tasks import Origin
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database

T0 = "2026-01-31T08:00:00.000Z"
ACCOUNT = "lark:cli_1"
PAIRED: dict[str, Right] = {"op": "operate", "own": "owner", "pal": "talk"}
HERE = None
"""Somebody in the chat may answer: the question is as it was."""


@pytest.fixture
async def database(tmp_path: Path) -> AsyncGenerator[Database]:
    async with open_database(tmp_path / "larkspur.db") as opened:
        yield opened


async def recipients(
    database: Database,
    operators: ChatOperators,
    paired: dict[str, Right],
    *,
    audience: Audience = "operators",
    **changes: Any,
) -> tuple[str, ...] | None:
    stores, place = Stores(), QuestionRecipients()
    place.add_account(ACCOUNT, lambda _: operators)
    for user, role in paired.items():
        name = user if ":" in user else f"{ACCOUNT}:{user}"
        assignment = RoleAssignment(name, user, role, "lark", T0)
        await database.write(partial(stores.roles.assign, assignment))
    fields = {"app": "cli_1", "chat_id": "oc_1", "message_id": "om_1", "direct": True, **changes}
    origin = Origin("lark", f"{ACCOUNT}:ann", **fields)
    ids = (RunId("run-1"), TaskId("task-1"), SessionId("session-1"))
    question = Question(QuestionId("question-1"), "approval", "May I?")
    record = QuestionRecord(question, *ids, origin.principal, origin.chat, audience, T0, T0)
    found = await database.read(partial(place.address, stores, record, origin))
    if found == record:
        return HERE
    assert found.question.is_for_others
    return found.question.recipients


@pytest.mark.parametrize(
    ("operators", "paired", "changes", "expected"),
    [
        (ChatOperators(), {}, {}, ()),
        (ChatOperators(), PAIRED, {}, ("op",)),
        (ChatOperators(), {"own": "owner", "pal": "talk"}, {}, ("own",)),
        (ChatOperators(("boss", "op")), PAIRED, {}, ("boss", "op")),
        (ChatOperators(("boss", "own")), {"own": "owner"}, {}, ("boss", "own")),
        (ChatOperators(("ann",)), PAIRED, {}, HERE),
        (ChatOperators(is_everyone=True), PAIRED, {}, HERE),
        (ChatOperators(), {"ann": "operate", **PAIRED}, {}, HERE),
        (ChatOperators(), {"ann": "owner"}, {}, HERE),
        (ChatOperators(("boss",)), {}, {"audience": "asker"}, HERE),
        (ChatOperators(), {"lark:cli_2:op": "operate"}, {}, ()),
        (ChatOperators(), PAIRED, {"app": "cli_2"}, HERE),
        (ChatOperators(("boss",)), PAIRED, {"audience": "owner"}, ("own",)),
        (ChatOperators(is_everyone=True), {}, {"audience": "owner"}, ()),
        (ChatOperators(), {"ann": "owner"}, {"audience": "owner"}, HERE),
        (ChatOperators(("boss",)), {}, {"direct": False}, HERE),
        (ChatOperators(), PAIRED, {"direct": False}, HERE),
        (ChatOperators(), {"pal": "talk"}, {"direct": False}, ()),
        (ChatOperators(), PAIRED, {"direct": False, "audience": "owner"}, ("own",)),
        (ChatOperators(("boss",), only_owners=True), PAIRED, {}, ("own",)),
        (ChatOperators(("boss",), wanted=()), PAIRED, {}, ()),
        (ChatOperators(("boss",), wanted=("pal", "own", "boss")), PAIRED, {}, ("own", "boss")),
        (ChatOperators(("boss",), wanted=("boss",)), PAIRED, {"audience": "owner"}, ()),
    ],
)
async def test_copies_go_to_those_who_may_answer(
    database: Database,
    operators: ChatOperators,
    paired: dict[str, Right],
    changes: dict[str, Any],
    expected: tuple[str, ...] | None,
) -> None:
    assert await recipients(database, operators, paired, **changes) == expected


async def test_at_most_five_people_are_asked(database: Database) -> None:
    many = tuple(f"boss{number}" for number in range(7))
    found = await recipients(database, ChatOperators(many), {"boss0": "operate"})
    assert found == many[:MAX_RECIPIENTS]
