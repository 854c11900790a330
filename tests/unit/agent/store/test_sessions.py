"""Sessions and their messages."""

from collections.abc import Callable
from functools import partial

import msgspec
import pytest

from internal.agent.domain.chats import InboundMessage
from internal.agent.domain.errors import Conflict
from internal.agent.domain.ids import QuestionId, RunId, SessionId
from internal.agent.domain.messages import (
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    user_message,
)
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.permissions.rules import PermissionRule
from internal.agent.domain.plans import Plan
from internal.agent.domain.questions import Question, QuestionRecord
from internal.agent.domain.react.context_window import message_tokens
from internal.agent.domain.tasks import SessionListFilter, SessionMarks, SessionSummary
from internal.agent.domain.usage import Usage
from internal.agent.store.checkpoints import CheckpointDelta
from internal.agent.store.database import Database, Row, Write
from internal.agent.store.runs import RunEnd
from internal.agent.store.sessions import MAX_SEARCHED
from internal.agent.store.stores import Stores
from tests.support.images import an_image
from tests.support.store_records import (
    CLEANED,
    HOSTILE,
    T0,
    T1,
    T2,
    T3,
    a_run,
    a_session,
    a_task,
    add_running_run,
    append_events,
)

SESSION, RUN = SessionId("session-1"), RunId("run-1")


async def test_a_stored_session_is_returned_unchanged(database: Database, stores: Stores) -> None:
    session = a_session(title="数羊", channel="cli", owner="ana", created=T0, updated=T1)
    await database.write(lambda: stores.sessions.add(session))

    assert await database.read(lambda: stores.sessions.get(session.id)) == session
    assert await database.read(lambda: stores.sessions.get(SessionId("session-?"))) is None
    with pytest.raises(Conflict):
        await database.write(lambda: stores.sessions.add(session))


async def test_the_newest_session_of_an_owner_in_a_channel(
    database: Database, stores: Stores
) -> None:
    for session in (
        a_session("session-a", updated=T1),
        a_session("session-b", updated=T2),
        a_session("session-c", updated=T3, channel="cli"),
        a_session("session-d", updated=T3, owner="ana"),
    ):
        await database.write(partial(stores.sessions.add, session))

    newest = await database.read(lambda: stores.sessions.get_newest("local", "web"))

    assert newest is not None
    assert newest.id == "session-b"
    assert await database.read(lambda: stores.sessions.get_newest("local", "lark")) is None


async def test_pages_are_most_recently_active_first(database: Database, stores: Stores) -> None:
    a, b, c = (
        a_session("session-a", updated=T1),
        a_session("session-b", updated=T2),
        a_session("session-c", updated=T2),
    )
    everything = SessionListFilter()
    others = a_session("session-d", updated=T0, owner="ana")
    for session in (a, b, c, others):
        await database.write(partial(stores.sessions.add, session))
    for number, status in ((1, "completed"), (2, "running")):
        task = a_task(f"task-{number}", a.id, status=status, created=T0)
        await database.write(partial(stores.tasks.add, task, None))
        await database.write(partial(stores.sessions.add_task, task, "", one_shot=False))

    async def page(
        owner: str | None, before: str | None = None, limit: int = 9
    ) -> list[SessionSummary]:
        listed = await database.read(
            lambda: stores.sessions.list_page(owner, everything, before, limit)
        )
        return listed.sessions

    # of its newest task
    a = msgspec.structs.replace(a, permission_mode=Mode.ASK)
    first, second = SessionSummary(c, None, 0), SessionSummary(b, None, 0)
    third, fourth = SessionSummary(a, "running", 2), SessionSummary(others, None, 0)
    assert await page("local") == [first, second, third]
    assert await page(None) == [first, second, third, fourth]
    assert await page("local", limit=1) == [first]
    assert await page("local", c.id) == [second, third]
    assert await page(None, b.id, 1) == [third]
    assert await page("local", others.id) == [], "another person's session is no cursor"
    assert await page("local", "session-unknown") == []


async def test_titles(database: Database, stores: Stores) -> None:
    await database.write(lambda: stores.sessions.add(a_session()))

    async def title() -> tuple[str, str]:
        session = await database.read(lambda: stores.sessions.get(SESSION))
        assert session is not None
        return session.title, session.updated

    async def add_task(line: str) -> None:
        work = partial(stores.sessions.add_task, a_task(), line, one_shot=False)
        await database.write(work)

    await add_task("first words")
    await add_task("second task")
    assert await title() == ("first words", T0)
    assert await database.write(lambda: stores.sessions.set_title_unless_named(SESSION, HOSTILE))
    assert await title() == (CLEANED, T0)
    rename_again = partial(stores.sessions.set_title_unless_named, SESSION, "second")
    assert not await database.write(rename_again)
    assert await database.write(lambda: stores.sessions.rename(SESSION, "third", T1))
    assert await title() == ("third", T1)
    unknown = SessionId("session-unknown")
    assert not await database.write(lambda: stores.sessions.rename(unknown, "x", T1))
    assert not await database.write(lambda: stores.sessions.set_title_unless_named(unknown, "x"))


async def test_marks_and_filters(database: Database, stores: Stores) -> None:
    for number, shot in ((1, False), (2, True), (3, False)):
        session = a_session(f"session-{number}", updated=f"{T0}{number}", one_shot=shot)
        await database.write(partial(stores.sessions.add, session))

    async def ids(wanted: SessionListFilter, before: str | None = None, limit: int = 9) -> str:
        listed = await database.read(
            lambda: stores.sessions.list_page("local", wanted, before, limit)
        )
        more = "…" if listed.next else ""
        return "".join(each.session.id[-1] for each in listed.sessions) + more

    async def mark(**marks: bool) -> None:
        changes = SessionMarks(**marks)
        await database.write(lambda: stores.sessions.mark(SESSION, changes, T2))

    assert await ids(SessionListFilter()) == "321"
    await mark(pinned=True)
    assert await ids(SessionListFilter(), limit=2) == "13…"
    assert await ids(SessionListFilter(), "session-3") == "2"
    await mark(archived=True)
    assert await ids(SessionListFilter(archived=False)) == "32"
    assert await ids(SessionListFilter(archived=True, pinned=True)) == "1"
    assert await ids(SessionListFilter(one_shot=False)) == "13"
    assert await ids(SessionListFilter(channel="lark")) == ""
    await mark(pinned=False, archived=False)
    assert await ids(SessionListFilter(pinned=False)) == "321"

    async def is_unread() -> bool:
        session = await database.read(lambda: stores.sessions.get(SESSION))
        assert session is not None
        return session.unread

    assert not await is_unread()
    await database.write(lambda: stores.sessions.add_messages(SESSION, RUN, [], now=T1))
    assert await is_unread()
    await mark(read=True)
    assert not await is_unread()
    await database.write(lambda: stores.sessions.add_messages(SESSION, RUN, [], now=T3))
    assert await is_unread()


@pytest.mark.parametrize(
    "text", ["100 %", "a_b", "it's", "鹭鸟", r"back\slash", '"quoted"', "HERON"]
)
async def test_a_search_finds_the_text_as_it_is_written(
    database: Database, stores: Stores, text: str
) -> None:
    decoys = "100 x, aXb, its, 鸟鹭, back/slash, quoted, her on"
    texts = {"task-1": f"{'x ' * 100}{text.lower()}{' y' * 100}", "task-2": decoys}
    for number, (task, instruction) in enumerate(texts.items(), 1):
        session = a_session(f"session-{number}")
        await database.write(partial(stores.sessions.add, session))
        stored = a_task(task, session.id, instruction=instruction)
        await database.write(partial(stores.tasks.add, stored, None))
    await database.write(partial(stores.sessions.add, a_session("session-3", title=text)))

    wanted = SessionListFilter(text=text)
    listed = await database.read(lambda: stores.sessions.list_page(None, wanted, None, 9))

    found = {each.session.id: each.found for each in listed.sessions}
    assert found.keys() == {"session-1", "session-3"}
    assert text.lower() in found[SESSION].lower()
    assert len(found[SESSION]) < len(texts["task-1"])
    assert listed.next is None


async def test_a_search_reads_a_limited_number_of_sessions_per_page(
    database: Database, stores: Stores
) -> None:
    def add() -> Write[None]:
        for number in range(MAX_SEARCHED + 50):
            title = "the oldest" if number == 0 else ""
            session = a_session(f"session-{number:05}", title=title)
            yield from stores.sessions.add(session)

    await database.write(add)
    wanted = SessionListFilter(text="oldest")

    first = await database.read(lambda: stores.sessions.list_page(None, wanted, None, 9))
    second = await database.read(lambda: stores.sessions.list_page(None, wanted, first.next, 9))

    assert first.sessions == []
    assert [each.session.title for each in second.sessions] == ["the oldest"]
    assert second.next is None


async def test_stored_messages_are_returned_unchanged(database: Database, stores: Stores) -> None:
    await database.write(lambda: stores.sessions.add(a_session()))
    asked = Message("user", (an_image(), Text("半角 \0")))
    calls = Message(
        "assistant", (Thinking("hm", "sig"), ToolCall("c1", "shell", {"a": [1, None]}, "{"))
    )
    result = Message("user", (ToolResult("c1", "no", failed=True),))

    await database.write(lambda: stores.sessions.add_messages(SESSION, RUN, [asked, calls], now=T1))
    await database.write(
        lambda: stores.sessions.add_messages(SESSION, RunId("run-2"), [result], now=T2)
    )
    await database.write(
        lambda: stores.sessions.add_messages(SessionId("s-2"), RUN, [asked], now=T2)
    )
    await database.write(lambda: stores.sessions.add_messages(SESSION, RUN, [], now=T0))

    newest = await database.read(lambda: stores.sessions.list_messages(SESSION, None, 9))
    assert [(row.number, row.run_id, row.message, row.created) for row in newest] == [
        (3, "run-2", result, T2),
        (2, RUN, calls, T1),
        (1, RUN, asked, T1),
    ]
    assert await database.read(lambda: stores.sessions.list_messages(SESSION, 3, 1)) == [newest[1]]
    assert await database.read(lambda: stores.sessions.list_messages(SESSION, 1, 9)) == []
    assert await database.read(lambda: stores.sessions.list_newest(SESSION, 2, 9)) == newest[:2]
    assert await database.read(lambda: stores.sessions.list_newest(SESSION, 1, 1)) == newest[:1]
    assert [row.tokens for row in newest] == [*map(message_tokens, (result, calls, asked))]
    session = await database.read(lambda: stores.sessions.get(SESSION))
    assert session is not None
    assert session.updated == T2, "never back in time"


async def test_messages_are_found_by_their_kind(database: Database, stores: Stores) -> None:
    task, more, other = user_message("Look."), user_message("And?"), user_message("Thanks.")
    call = Message("assistant", (ToolCall("c1", "shell", {}),))
    result = Message("user", (ToolResult("c1", "ok"),))
    done = Message("assistant", (Text("Done."),))
    for number, messages in enumerate([[task, call, result, more, done], [other, call, result]]):
        run_id = RunId(f"run-{number}")
        await database.write(
            partial(stores.sessions.add_messages, SESSION, run_id, messages, now=T1)
        )

    words = await database.read(lambda: stores.sessions.list_words(SESSION, None, 9))
    assert [row.number for row in words] == [6, 5, 4, 1]
    assert [row.message for row in words] == [other, done, more, task]
    assert await database.read(lambda: stores.sessions.list_words(SESSION, 5, 1)) == [words[2]]
    find = stores.sessions.get_last_message
    assert await database.read(lambda: find(SESSION, "answer", None)) == words[1]
    assert await database.read(lambda: find(SESSION, "task", None)) == words[0]
    assert await database.read(lambda: find(SESSION, "task", 6)) == words[3]
    assert await database.read(lambda: find(SESSION, "answer", 5)) is None


async def test_lone_surrogates_of_a_message_are_replaced(
    database: Database, stores: Stores
) -> None:
    call = ToolCall("c", "shell", {"k\ud800": ["\udc00", {"x": "\ud83d\ude00"}], "n": 1})

    await database.write(
        lambda: stores.sessions.add_messages(SESSION, RUN, [Message("assistant", (call,))], now=T1)
    )

    (row,) = await database.read(lambda: stores.sessions.list_messages(SESSION, None, 1))
    assert row.message.calls[0].arguments == {"k\ufffd": ["\ufffd", {"x": "😀"}], "n": 1}


TABLES = (
    "sessions", "messages", "events", "runs", "turn_log", "checkpoints", "tasks", "questions",
    "plans", "usage", "inbox", "permission_rules",
)  # fmt: skip


async def fill(database: Database, stores: Stores, number: int) -> None:
    """Give a session a row in every table, of a run that is at work."""
    session = a_session(f"session-{number}")
    await database.write(lambda: stores.sessions.add(session))
    task, run = a_task(f"task-{number}", session.id), a_run(f"run-{number}", session.id)
    await database.write(lambda: stores.tasks.add(task, None))
    run = await add_running_run(database, stores, run)
    question = Question(QuestionId(f"question-{number}"), "clarify", "?")
    asked = QuestionRecord(question, run.id, task.id, session.id, "local", "", "operators", T0, T1)
    received = InboundMessage("web", "", f"msg-{number}", "", "local", '{"text":"hi"}', T0)
    said = Message("user", (Text("hi"),))
    for work in (
        lambda: append_events(stores, run, 2),
        lambda: stores.runs.save_checkpoint(run.id, CheckpointDelta(b"{}", 0, (b"1",))),
        lambda: stores.sessions.add_messages(session.id, run.id, [said], now=T1),
        lambda: stores.questions.add(asked),
        lambda: stores.permission_rules.add(
            PermissionRule(0, session.id, "shell(ls)", "local", "web", "", T0)
        ),
        lambda: stores.questions.save_plan(run.id, session.id, Plan(1, "g", "simple", ()), now=T0),
        lambda: stores.usage.save(run, "local", "m", usage=Usage(), cost=None, now=T0),
        lambda: stores.inbox.assign(received, session.id, run.id, steer=False),
    ):
        await database.write(work)


async def test_deleting_a_session_deletes_all_its_rows(
    database: Database, stores: Stores, select: Callable[[str], list[Row]]
) -> None:
    def counts() -> dict[str, int]:
        return {table: select(f"select count(*) from {table}")[0][0] for table in TABLES}  # noqa: S608 - our own names

    await fill(database, stores, 2)
    before = counts()
    assert all(before.values())
    await fill(database, stores, 1)

    assert not await database.write(lambda: stores.sessions.delete(SESSION)), "its run is running"
    assert counts() == {table: 2 * count for table, count in before.items()}
    end = RunEnd("failed", "error", Usage(), None, "", "", T1)
    await database.write(lambda: stores.runs.end(RUN, 1, end))
    assert await database.write(lambda: stores.sessions.delete(SESSION))

    assert counts() == before
    assert await database.read(lambda: stores.sessions.get(SESSION)) is None
    assert await database.read(lambda: stores.sessions.get(SessionId("session-2"))) is not None
    assert not await database.write(lambda: stores.sessions.delete(SESSION))


async def test_the_newest_session_of_a_scope_is_current(database: Database, stores: Stores) -> None:
    for name, scope, created in (("1", "chat", T0), ("2", "chat", T1), ("3", "other", T2)):
        session = a_session(f"session-{name}", channel="lark", scope=scope, created=created)
        await database.write(partial(stores.sessions.add, session))
    at_hand = await database.read(lambda: stores.sessions.get_current("lark", "chat"))
    assert at_hand is not None
    assert (at_hand.id, at_hand.scope) == ("session-2", "chat")
    assert await database.read(lambda: stores.sessions.get_current("web", "chat")) is None
