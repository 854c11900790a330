"""The scope of a message's conversation, and attempts that are not made."""

import asyncio
from functools import partial
from typing import get_args

import pytest

from internal.agent.app.chat_delivery import Acceptance
from internal.agent.domain.chats import AcceptedMessage, InboundMessage
from internal.channels.chat.inbox_worker import InboxListener, InboxWorker, conversation_scope
from internal.i18n.chat import ChatTexts
from internal.settings.chat import SessionScope
from tests.support.echo_channel import echo_message
from tests.support.web_app import defaults
from tests.unit.channels.chat.conftest import T0, EchoApp

KINDS: tuple[SessionScope, ...] = get_args(SessionScope)
PLACES = [
    echo_message("m", "", chat, thread_id=thread, user_id=user, is_direct=False)
    for chat in ("oc_1", "oc_2")
    for thread in ("", "omt_1", "omt_2")
    for user in ("ou_1", "ou_2")
]


@pytest.mark.parametrize("kind", KINDS)
def test_outside_of_threads_a_direct_chat_has_one_scope(kind: SessionScope) -> None:
    scope = conversation_scope("lark", echo_message("m", "", "oc_1"), kind)
    assert scope == "lark-efa6810471d5f42b5f3e792f"


@pytest.mark.parametrize(
    ("kind", "count"), [("chat", 2), ("thread", 6), ("sender", 4), ("thread_sender", 12)]
)
def test_each_place_has_a_scope(kind: SessionScope, count: int) -> None:
    scopes = {conversation_scope("lark", each, kind) for each in PLACES}
    assert len(scopes) == count
    assert {len(scope) for scope in scopes} == {29}


def test_a_place_has_one_scope_whatever_its_kind() -> None:
    scopes = {conversation_scope("lark", each, kind) for each in PLACES for kind in KINDS}
    assert len(scopes) == 2 + 4 + 4 + 8


async def test_an_attempt_that_began_with_the_acceptance_and_is_not_made_does_not_count(
    app: EchoApp,
) -> None:
    claim = partial(app.stores.leaderships.claim, "echo:test", "this process", "9999", None)
    leader = await app.database.write(claim)
    row = InboundMessage("echo", "test", "m1", "direct", "echo:test:mei", "{}", T0)
    accepting = app.gateway.delivery.accept(row, wait=1.0, leader=leader)
    assert await asyncio.wrap_future(accepting) is Acceptance.BEGUN
    worker = InboxWorker(
        app.transport,
        app.gateway,
        app.users,
        settings=app.settings,
        defaults=defaults(),
        texts=ChatTexts(),
        listener=InboxListener(lambda _: None, lambda _, __: None, lambda: None),
        instructions=app.instructions,
    )
    worker.take(row, is_begun=True)  # it does not process messages any more
    await app.gateway.delivery.drop("echo", "test", "", "what was stored before is on disk then")
    found = await app.gateway.delivery.list_accepted("echo", "test", 10)
    assert found == [AcceptedMessage(row)]
