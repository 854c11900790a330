"""Routes for messages and runs that were given up."""

from functools import partial

import pytest

from internal.agent.domain.chats import OutgoingMessage
from internal.channels.web.services import WebServices
from tests.support.web_calls import Call

REASON = "Lark rejected (230002): not in the chat (log id 2026abc)"


@pytest.fixture
async def letters(services: WebServices) -> None:
    """Two messages that were given up; the second one may have been sent."""
    gateway = services.gateway
    database, stores = gateway.queries._database, gateway.queries._stores
    for number in (1, 2):
        outgoing = OutgoingMessage(f"key-{number}", "lark", "cli_a", "oc_1", "", f"text {number}")
        await database.write(partial(stores.outbox.add, outgoing, "2026-11-22T10:00:00.000Z"))
        give_up = partial(stores.outbox.give_up, number, REASON, f"2026-11-22T1{number}")
        await database.write(partial(give_up, unconfirmed=number == 2))


@pytest.mark.usefixtures("letters")
async def test_dead_letters_are_listed_newest_first(call: Call) -> None:
    found = (await call("GET", "/api/dead-letters")).json()["dead_letters"]
    assert [(one["id"], one["may_have_been_sent"]) for one in found] == [
        ("outgoing-2", True),
        ("outgoing-1", False),
    ]
    assert found[1]["reason"] == REASON
    assert found[1]["text"] == "text 1"
    assert found[1]["chat_id"] == "oc_1"
    limited = (await call("GET", "/api/dead-letters?limit=1")).json()["dead_letters"]
    assert [one["id"] for one in limited] == ["outgoing-2"]


@pytest.mark.usefixtures("letters")
async def test_a_dead_letter_is_retried_at_once(call: Call, services: WebServices) -> None:
    woken: list[str] = []
    services.gateway.delivery.add_loop(lambda: woken.append("sender"))
    assert (await call("POST", "/api/dead-letters/outgoing-1/retry", {})).status == 204
    assert woken == ["sender"]
    due = await services.gateway.delivery.list_due("lark", "cli_a", 9)
    assert [(one.number, one.attempts) for one in due] == [(1, 0)]
    assert (await call("POST", "/api/dead-letters/outgoing-1/retry", {})).status == 404
    audit = (await call("GET", "/api/audit")).json()["entries"]
    assert [(one["action"], one["target"]) for one in audit] == [
        ("dead_letter.retried", "outgoing-1")
    ]


@pytest.mark.usefixtures("letters")
async def test_one_that_may_have_been_sent_needs_consent(call: Call) -> None:
    path = "/api/dead-letters/outgoing-2/retry"
    refused = await call("POST", path, {})
    assert refused.status == 409
    assert "may appear twice" in refused.json()["error"]["message"]
    assert (await call("POST", path, {"may_repeat": True})).status == 204


@pytest.mark.usefixtures("letters")
async def test_a_dead_letter_is_dismissed(call: Call) -> None:
    assert (await call("POST", "/api/dead-letters/outgoing-2/dismiss")).status == 204
    assert (await call("POST", "/api/dead-letters/outgoing-2/dismiss")).status == 404
    found = (await call("GET", "/api/dead-letters")).json()["dead_letters"]
    assert [one["id"] for one in found] == ["outgoing-1"]


async def test_an_unknown_dead_letter_is_not_found(call: Call) -> None:
    for name in ("outgoing-1", "incoming-x", "9" * 30):
        assert (await call("POST", f"/api/dead-letters/{name}/retry", {})).status == 404
