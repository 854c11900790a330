"""Settings of chats, received and outgoing messages, and displays of runs are stored."""

from collections.abc import Callable
from functools import partial

import msgspec
import pytest

from internal.agent.domain.chats import (
    AcceptedMessage,
    ChatSettings,
    InboundMessage,
    OutboxBacklog,
    OutgoingMessage,
    PendingMessage,
    RunDisplay,
    UnprocessedMessage,
    UnsentMessage,
)
from internal.agent.domain.errors import Conflict
from internal.agent.domain.ids import RunId, SessionId
from internal.agent.domain.tasks import Attachment, Channel
from internal.agent.store.chats import Steering
from internal.agent.store.database import Database, Row
from internal.agent.store.stores import Stores
from tests.support.store_records import CLEANED, HOSTILE, T0, T1, T2, T3

CHAT, OTHER = "lark:cli_a:oc_1", "lark:cli_a:oc_2"


async def test_chat_settings_are_replaced(database: Database, stores: Stores) -> None:
    assert await database.read(partial(stores.chats.get_settings, CHAT)) == ChatSettings()
    for settings in (
        ChatSettings("always"),
        ChatSettings("off", HOSTILE),
        ChatSettings(None, "claude-y"),
        ChatSettings(instructions=HOSTILE),
    ):
        await database.write(partial(stores.chats.save_settings, CHAT, settings))
        stored = await database.read(partial(stores.chats.get_settings, CHAT))
        assert stored == settings._replace(
            model=CLEANED if settings.model == HOSTILE else settings.model,
            instructions=CLEANED if settings.instructions else "",
        )
    assert await database.read(partial(stores.chats.get_settings, OTHER)) == ChatSettings()


SESSION, RUN, NEXT = SessionId("session-1"), RunId("run-1"), RunId("run-2")


def said(
    text: str, message_id: str = "", channel: Channel = "web", app: str = ""
) -> InboundMessage:
    raw = msgspec.json.encode({"text": text, "more": 1}).decode()
    return InboundMessage(channel, app, message_id or f"msg-{text}", "chat", "ana", raw, T0)


async def take(
    database: Database,
    stores: Stores,
    message: InboundMessage,
    run: RunId = RUN,
    *,
    steer: bool = True,
) -> None:
    await database.write(lambda: stores.inbox.assign(message, SESSION, run, steer=steer))


async def untold(database: Database, stores: Stores, run: RunId = RUN) -> list[Steering]:
    return await database.read(lambda: stores.inbox.list_undelivered(run))


async def test_a_message_is_accepted_once(
    database: Database, stores: Stores, select: Callable[[str], list[Row]]
) -> None:
    message = said("hi", "om_1", "lark", "app")

    async def accept(message: InboundMessage) -> bool:
        return await database.write(lambda: stores.inbox.accept(message))

    assert await accept(message)
    assert not await accept(msgspec.structs.replace(message, raw="{}"))
    assert await accept(msgspec.structs.replace(message, app="another"))
    assert await accept(msgspec.structs.replace(message, channel="web"))
    assert select("select raw, status from inbox order by number")[0] == (message.raw, "accepted")


async def test_steering_is_delivered_in_order_of_arrival(
    database: Database, stores: Stores
) -> None:
    for text in ("c", "a", "b"):
        await take(database, stores, said(text))
    await take(database, stores, said("start"), steer=False)
    await take(database, stores, said("other"), NEXT)

    waiting = await untold(database, stores)
    assert [words[1:7] for words in waiting] == [
        (text, "ana", "web", "", "chat", f"msg-{text}") for text in ("c", "a", "b")
    ]

    await database.write(
        lambda: stores.inbox.mark_delivered([waiting[0].number, waiting[1].number])
    )
    assert await untold(database, stores) == [waiting[2]]
    await database.write(lambda: stores.inbox.mark_delivered([]))
    assert await untold(database, stores) == [waiting[2]]


async def test_an_accepted_message_is_assigned_once(
    database: Database, stores: Stores, select: Callable[[str], list[Row]]
) -> None:
    raw = '{"content": "{}"}'
    message = msgspec.structs.replace(said("hello", "om_1", "lark"), raw=raw)
    await database.write(lambda: stores.inbox.accept(message))
    understood = said("hello", "om_1", "lark")

    await take(database, stores, understood)

    assert [words.text for words in await untold(database, stores)] == ["hello"]
    assert select("select raw from inbox") == [(raw,)], "what came stays as it came"
    with pytest.raises(Conflict):
        await take(database, stores, understood, NEXT)
    assert await untold(database, stores, NEXT) == []


async def test_invalid_characters_of_a_message_are_replaced(
    database: Database, stores: Stores
) -> None:
    raw = '{"text":"' + HOSTILE.replace("\0", "\\u0000").replace("\a", "\\u0007") + '"}'
    await take(database, stores, InboundMessage("web", "", "msg-1", "", "ana", raw, T0))

    assert [words.text for words in await untold(database, stores)] == [CLEANED]


async def test_delivered_steering_is_handled_and_undelivered_steering_is_reassigned(
    database: Database, stores: Stores, select: Callable[[str], list[Row]]
) -> None:
    await take(database, stores, said("start"), steer=False)
    for text in ("delivered", "late"):
        await take(database, stores, said(text))
    told, late = await untold(database, stores)
    await database.write(lambda: stores.inbox.mark_delivered([told.number]))

    await database.write(lambda: stores.inbox.reassign([late.number], NEXT))
    await database.write(lambda: stores.inbox.mark_handled(RUN))

    assert await untold(database, stores) == []
    assert await untold(database, stores, NEXT) == [], "it starts the next run, it does not steer"
    rows = select("select text, run_id, status from inbox order by number")
    assert rows == [
        ("start", RUN, "handled"), ("delivered", RUN, "handled"), ("late", NEXT, "assigned"),
    ]  # fmt: skip
    await database.write(lambda: stores.inbox.mark_handled(NEXT))
    assert select("select distinct status from inbox") == [("handled",)]


async def test_undelivered_steering_is_not_handled(database: Database, stores: Stores) -> None:
    await take(database, stores, said("late"))

    await database.write(lambda: stores.inbox.mark_handled(RUN))

    assert [words.text for words in await untold(database, stores)] == ["late"]


async def test_accepted_messages_are_listed_until_assigned(
    database: Database, stores: Stores
) -> None:
    messages = [said(text, channel="lark", app="a") for text in ("one", "two", "three")]
    for message in (*messages, said("other", channel="lark", app="b"), said("web")):
        await database.write(partial(stores.inbox.accept, message))

    async def waiting(limit: int = 9) -> list[InboundMessage]:
        found = await database.read(lambda: stores.inbox.list_accepted("lark", "a", limit))
        return [each.message for each in found]

    assert await waiting() == messages
    assert await waiting(1) == messages[:1]
    await take(database, stores, messages[0])
    assert await database.write(lambda: stores.inbox.dismiss("lark", "a", "msg-two"))
    assert not await database.write(lambda: stores.inbox.dismiss("lark", "a", "msg-two"))
    assert not await database.write(lambda: stores.inbox.dismiss("lark", "a", "msg-one"))
    assert await waiting() == messages[2:]


async def test_an_edited_message_is_accepted_again_unless_it_was_taken(
    database: Database, stores: Stores
) -> None:
    async def accept_edited(text: str, message_id: str) -> bool:
        message = said(text, message_id, channel="lark", app="a")
        return await database.write(partial(stores.inbox.accept_edited, message))

    async def waiting() -> list[str]:
        found = await database.read(partial(stores.inbox.list_accepted, "lark", "a", 9))
        return [each.message.raw for each in found]

    assert await accept_edited("new", "m1")
    assert await accept_edited("newer", "m1")
    assert await waiting() == [said("newer").raw]
    await database.write(partial(stores.inbox.dismiss, "lark", "a", "m1"))
    assert await waiting() == []
    assert await accept_edited("newest", "m1")
    await take(database, stores, said("newest", "m1", channel="lark", app="a"))
    assert not await accept_edited("too late", "m1")
    assert await waiting() == []


async def test_attempts_to_process_a_message_are_stored_before_and_after(
    database: Database, stores: Stores
) -> None:
    inbox, message = stores.inbox, said("one", channel="lark", app="a")
    await database.write(partial(inbox.accept, message))

    async def stored() -> AcceptedMessage:
        (found,) = await database.read(partial(inbox.list_accepted, "lark", "a", 9))
        return found

    assert await stored() == AcceptedMessage(message)
    assert await database.write(partial(inbox.begin_processing, message, 1, T1))
    begun = await stored()
    assert begun == AcceptedMessage(message, 1, T1)
    assert begun.may_crash
    postpone = partial(inbox.postpone_processing, message, 1, next_attempt=T2, failure=HOSTILE)
    await database.write(postpone)
    failed = await stored()
    assert failed == AcceptedMessage(message, 1, T2, CLEANED)
    assert not failed.may_crash
    await take(database, stores, message)
    assert not await database.write(partial(inbox.begin_processing, message, 2, T2))


async def test_a_message_that_was_set_aside_is_retried_or_dismissed(
    database: Database, stores: Stores, select: Callable[[str], list[Row]]
) -> None:
    inbox = stores.inbox
    messages = [said(text, channel="lark", app="a") for text in ("one", "two")]
    for message in messages:
        await database.write(partial(inbox.accept, message))
        await database.write(partial(inbox.begin_processing, message, 3, T1))
        aside = partial(inbox.set_aside, message, failure="broke", text="words", now=T2)
        assert await database.write(aside)
        assert not await database.write(aside)
    assert await database.read(partial(inbox.list_accepted, "lark", "a", 9)) == []
    assert await database.read(partial(inbox.list_unprocessed, 9)) == [
        UnprocessedMessage(2, messages[1], "words", 3, "broke", T2),
        UnprocessedMessage(1, messages[0], "words", 3, "broke", T2),
    ]
    assert await database.read(partial(stores.outbox.count_dead_letters, 3)) == 2
    assert await database.write(partial(inbox.retry, 1)) == "msg-one"
    assert await database.write(partial(inbox.dismiss_unprocessed, 1)) == ""
    assert await database.write(partial(inbox.dismiss_unprocessed, 2)) == "msg-two"
    assert await database.write(partial(inbox.retry, 2)) == ""
    accepted = await database.read(partial(inbox.list_accepted, "lark", "a", 9))
    assert accepted == [AcceptedMessage(messages[0])]
    assert await database.read(partial(inbox.list_unprocessed, 9)) == []
    assert select("select status from inbox order by number") == [("accepted",), ("handled",)]


def reply(number: int, chat: str = "chat", app: str = "app") -> OutgoingMessage:
    return OutgoingMessage(
        f"run-{number}:answer", "lark", app, chat, f"om_{number}", "body", f"run-{number}"
    )


async def add_messages(database: Database, stores: Stores, *replies: OutgoingMessage) -> None:
    for each in replies:
        assert await database.write(partial(stores.outbox.add, each, T0))


async def due(database: Database, stores: Stores, now: str = T1) -> list[PendingMessage]:
    return await database.read(lambda: stores.outbox.list_due("lark", "app", now=now, limit=10))


async def test_a_message_is_added_once(database: Database, stores: Stores) -> None:
    first = msgspec.structs.replace(
        reply(1), body=HOSTILE, error=HOSTILE, stop_reason="final_answer"
    )
    await add_messages(database, stores, first)
    assert not await database.write(lambda: stores.outbox.add(first, T1))
    outgoing = msgspec.structs.replace(first, body=CLEANED, error=CLEANED)
    assert await due(database, stores) == [PendingMessage(1, outgoing, 0, None, None, 0)]


async def test_a_message_has_its_files_when_it_is_sent_and_when_it_is_given_up(
    database: Database, stores: Stores
) -> None:
    file = Attachment("報告.pdf", "application/pdf", "attachment:abc", "abc", 3)
    outgoing = msgspec.structs.replace(reply(1), attachments=(file, file))
    await add_messages(database, stores, outgoing, reply(2))
    assert [each.outgoing for each in await due(database, stores)] == [outgoing]
    assert await database.write(lambda: stores.outbox.give_up(1, "no", T1, unconfirmed=False))
    (dead,) = await database.read(partial(stores.outbox.list_unsent, 10))
    assert (dead.outgoing, dead.failure) == (outgoing, "no")
    assert [each.outgoing for each in await due(database, stores)] == [reply(2)]


async def test_messages_of_a_chat_are_due_in_order(database: Database, stores: Stores) -> None:
    await add_messages(
        database, stores, reply(1), reply(2), reply(3, "other"), reply(4, app="app-2")
    )

    async def numbers(now: str = T1) -> list[int]:
        return [pending.number for pending in await due(database, stores, now)]

    assert await numbers() == [1, 3]
    assert await database.write(lambda: stores.outbox.begin_attempt(1, T1)) == 1
    await database.write(lambda: stores.outbox.postpone(1, T2, "busy", unconfirmed=False))
    assert await numbers() == [3]
    assert await numbers(T2) == [1, 3]
    assert await database.write(lambda: stores.outbox.begin_attempt(1, T2)) == 2
    first = (await due(database, stores, T2))[0]
    assert (first.attempts, first.first_attempt) == (2, T1)
    assert await database.write(lambda: stores.outbox.mark_sent(1, "om_reply", T2))
    assert not await database.write(lambda: stores.outbox.mark_sent(1, "om_again", T2))
    assert await database.write(lambda: stores.outbox.begin_attempt(1, T3)) is None
    assert await numbers(T2) == [2, 3]


async def test_only_the_leader_begins_an_attempt(database: Database, stores: Stores) -> None:
    await add_messages(database, stores, reply(1))
    held = await database.write(lambda: stores.leaderships.claim("lark:app", "one", T1, None))
    assert held is not None
    begin = partial(stores.outbox.begin_attempt, 1, T1)
    assert await database.write(partial(begin, held)) == 1
    assert await database.write(partial(begin, held._replace(name="lark:other"))) is None
    await database.write(partial(stores.leaderships.release, held))
    assert await database.write(partial(begin, held)) is None


async def test_an_attempt_has_an_unknown_outcome_unless_it_failed(
    database: Database, stores: Stores
) -> None:
    await add_messages(database, stores, reply(1))

    async def attempt(now: str, *, unconfirmed: bool) -> PendingMessage:
        await database.write(partial(stores.outbox.begin_attempt, 1, now))
        assert (await due(database, stores))[0].unknown_since is not None
        postpone = partial(stores.outbox.postpone, 1, T0, "why", unconfirmed=unconfirmed)
        await database.write(partial(postpone, isolated=unconfirmed))
        return (await due(database, stores))[0]

    assert (await attempt(T1, unconfirmed=False))[2:] == (1, T1, None, 0)
    assert (await attempt(T2, unconfirmed=True))[2:] == (2, T1, T2, 1)
    assert (await attempt(T3, unconfirmed=True))[2:] == (3, T1, T2, 2)


async def test_a_message_that_fails_by_itself_delays_only_its_run(
    database: Database, stores: Stores
) -> None:
    failing, same_run = reply(1), msgspec.structs.replace(reply(2), run_id="run-1")
    same_message = msgspec.structs.replace(reply(3), reply_to="om_1")
    await add_messages(database, stores, failing, same_run, same_message, reply(4), reply(5))

    async def numbers(failing_since: str) -> list[int]:
        list_due = partial(stores.outbox.list_due, "lark", "app", now=T3, limit=10)
        found = await database.read(partial(list_due, failing_since=failing_since))
        return [pending.number for pending in found]

    async def fail(*, isolated: bool) -> None:
        await database.write(partial(stores.outbox.begin_attempt, 1, T1))
        postpone = partial(stores.outbox.postpone, 1, T3, "why", unconfirmed=False)
        await database.write(partial(postpone, isolated=isolated))

    await fail(isolated=False)
    assert await numbers(T2) == [1]
    await fail(isolated=True)
    assert await numbers(T0) == [1]
    assert await numbers(T1) == [1, 4]
    await database.write(partial(stores.outbox.mark_sent, 4, "om_4", T2))
    assert await numbers(T1) == [1, 5]
    await database.write(partial(stores.outbox.mark_sent, 1, "om_1", T2))
    assert await numbers(T1) == [2]


async def test_dead_letters_are_listed_and_do_not_block(database: Database, stores: Stores) -> None:
    await add_messages(database, stores, reply(1), reply(2), reply(3))
    assert await database.write(
        lambda: stores.outbox.give_up(1, "no such chat", T1, unconfirmed=False)
    )
    assert await database.write(lambda: stores.outbox.give_up(2, "no answer", T2, unconfirmed=True))
    assert not await database.write(lambda: stores.outbox.give_up(2, "again", T2, unconfirmed=True))
    assert [pending.number for pending in await due(database, stores)] == [3]
    assert await database.read(lambda: stores.outbox.list_unsent(9)) == [
        UnsentMessage(2, reply(2), unconfirmed=True, failure="no answer", settled=T2),
        UnsentMessage(1, reply(1), unconfirmed=False, failure="no such chat", settled=T1),
    ]


async def test_a_dead_letter_becomes_pending_as_if_it_were_new(
    database: Database, stores: Stores
) -> None:
    await add_messages(database, stores, reply(1), reply(2))
    outbox = stores.outbox
    assert await database.write(lambda: outbox.begin_attempt(1, T1)) == 1
    await database.write(lambda: outbox.give_up(1, "no answer", T1, unconfirmed=True))
    assert await database.read(lambda: outbox.is_unconfirmed(1)) is True
    assert await database.read(lambda: outbox.is_unconfirmed(2)) is None
    assert await database.write(lambda: outbox.resend(1, T2, unconfirmed=False)) == ""
    assert await database.write(lambda: outbox.resend(1, T2, unconfirmed=True)) == reply(1).key
    first = (await due(database, stores, T2))[0]
    assert first == PendingMessage(1, reply(1), 0, None)
    assert await database.read(lambda: outbox.list_unsent(9)) == []
    backlog = await database.read(
        lambda: outbox.get_backlog("lark", "app", waiting_since=T2, given_up_since=T0)
    )
    assert backlog == OutboxBacklog(1, 0)  # the other one has waited since T0


async def test_a_message_that_was_given_up_is_dismissed(database: Database, stores: Stores) -> None:
    outbox = stores.outbox
    await add_messages(database, stores, reply(1), reply(2))
    await database.write(lambda: outbox.give_up(1, "no answer", T1, unconfirmed=True))
    assert await database.read(partial(outbox.count_dead_letters, 3)) == 1
    assert await database.write(partial(outbox.dismiss_unsent, 1)) == reply(1).key
    for number in (1, 2, 3):
        assert await database.write(partial(outbox.dismiss_unsent, number)) == ""
    assert await database.read(partial(outbox.list_unsent, 9)) == []
    assert await database.read(partial(outbox.count_dead_letters, 3)) == 0


async def test_messages_that_wait_for_a_chat_are_dropped(
    database: Database, stores: Stores
) -> None:
    elsewhere = reply(3, chat="other")
    await add_messages(database, stores, reply(1), reply(2), elsewhere)
    await database.write(lambda: stores.outbox.mark_sent(1, "om_1", T1))
    drop = partial(stores.outbox.drop, "lark", "app", "chat", why="gone", now=T2)
    assert [await database.write(drop) for _ in range(2)] == [1, 0]
    assert [pending.number for pending in await due(database, stores)] == [3]
    assert await database.read(lambda: stores.outbox.list_unsent(9)) == []


async def test_the_question_of_a_sent_message_is_found(database: Database, stores: Stores) -> None:
    question = OutgoingMessage(
        "question-1:asked", "lark", "cli_a", "oc_1", "om_0", "May I?", question_id="question-1"
    )
    answer = msgspec.structs.replace(question, key="run-1:answer", question_id="")
    for number, outgoing in enumerate((question, answer), 1):
        await database.write(partial(stores.outbox.add, outgoing, T0))
        assert await database.read(partial(stores.outbox.find_question, f"om_{number}")) == ""
        await database.write(partial(stores.outbox.mark_sent, number, f"om_{number}", T1))
    assert await database.read(partial(stores.outbox.find_question, "om_1")) == "question-1"
    assert await database.read(partial(stores.outbox.find_question, "om_2")) == ""
    assert await database.read(partial(stores.outbox.find_question, "")) == ""


CHANNEL = "lark:app"
SHOWN_RUN = RunId("run-1")


async def test_a_run_display_has_one_owner(database: Database, stores: Stores) -> None:
    async def claim(owner: str, now: str, until: str = T2) -> RunDisplay | None:
        return await database.write(
            lambda: stores.run_displays.claim(SHOWN_RUN, CHANNEL, owner, lease_until=until, now=now)
        )

    assert await claim("one", T0) == RunDisplay(SHOWN_RUN, 0, "")
    assert await claim("two", T1) is None
    shown = RunDisplay(SHOWN_RUN, 7, '{"card": "om_1"}')
    assert await database.write(
        lambda: stores.run_displays.save(shown, CHANNEL, "one", lease_until=T2)
    )
    assert not await database.write(
        lambda: stores.run_displays.save(shown, CHANNEL, "two", lease_until=T2)
    )
    assert await claim("one", T1) == shown
    assert await claim("two", T3, "2027") == shown
    assert not await database.write(
        lambda: stores.run_displays.save(shown, CHANNEL, "one", lease_until=T2)
    )
    assert not await database.write(lambda: stores.run_displays.close(shown, CHANNEL, "one"))
    assert await database.write(lambda: stores.run_displays.close(shown, CHANNEL, "two"))
    assert await claim("two", T3, "2028") is None
    assert await database.read(lambda: stores.run_displays.get(SHOWN_RUN, CHANNEL)) == shown
    assert await database.read(lambda: stores.run_displays.get(SHOWN_RUN, "elsewhere")) is None


async def test_an_abandoned_run_display_is_listed(database: Database, stores: Stores) -> None:
    for run, owner, until in (("run-1", "dead", T1), ("run-2", "alive", T3)):
        claim = partial(
            stores.run_displays.claim, RunId(run), CHANNEL, owner, lease_until=until, now=T0
        )
        await database.write(claim)
    found = await database.read(lambda: stores.run_displays.list_abandoned(CHANNEL, T2))
    assert found == [RunDisplay(SHOWN_RUN, 0, "")]
    assert await database.read(lambda: stores.run_displays.list_abandoned("elsewhere", T2)) == []


async def test_chats_with_sessions_are_listed_by_their_newest_message(
    database: Database, stores: Stores
) -> None:
    inbox = stores.inbox
    for number, chat in enumerate("abacb"):
        message = msgspec.structs.replace(said(str(number), channel="lark", app="a"), chat_id=chat)
        await database.write(partial(inbox.accept, message))
        if chat != "c":  # ignored: it is not part of a session
            await take(database, stores, message)
    await take(database, stores, said("elsewhere", channel="lark", app="b"))
    active = partial(inbox.list_active_chats, "lark", "a")
    assert await database.read(partial(active, 9)) == ["b", "a"]
    assert await database.read(partial(active, 1)) == ["b"]
    newest = await database.read(partial(inbox.list_newest_of_chat, "lark", "a", "a", 1))
    assert [each.message_id for each in newest] == ["msg-2"]
    assert await database.read(partial(inbox.list_active_chats, "lark", "none", 9)) == []


async def test_the_time_until_which_nothing_is_missing_never_goes_back(
    database: Database, stores: Stores
) -> None:
    get = partial(stores.inbox.get_history_mark, "lark", "a")
    assert await database.read(get) == ""
    for mark in (T1, T0, T2, T1):
        await database.write(partial(stores.inbox.save_history_mark, "lark", "a", mark))
    assert await database.read(get) == T2
    assert await database.read(partial(stores.inbox.get_history_mark, "lark", "b")) == ""
