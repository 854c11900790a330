"""`larkspur lark`."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from internal.agent.domain.chats import OutgoingMessage
from internal.agent.domain.tasks import Channel
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from tests.unit.channels.cli.commands.conftest import CommandRunner

REASON = "Lark rejected (230002): the bot is not in the chat (log id 2026abc)"
AT = "2026-11-22T10:00:00.000Z"


@pytest.fixture
def letters(home: Path, run: CommandRunner) -> None:
    """Messages that were given up: one was not sent, two may have been, one is of no chat."""
    run.local("lark", "dead")  # creates the database
    asyncio.run(_add(home / "larkspur.db"))


async def _add(path: Path) -> None:
    outbox = Stores().outbox
    rows: list[tuple[Channel, bool]] = [("lark", False), ("lark", True), ("lark", True)]
    async with open_database(path) as database:
        for number, (channel, unconfirmed) in enumerate([*rows, ("web", False)], 1):
            outgoing = OutgoingMessage(
                f"key-{number}", channel, "cli_a", "oc_1", "", f"no {number}"
            )
            await database.write(partial(outbox.add, outgoing, AT))
            give_up = partial(outbox.give_up, number, REASON, AT, unconfirmed=unconfirmed)
            await database.write(give_up)


def test_no_dead_letters_is_an_empty_list(run: CommandRunner) -> None:
    assert run.local("lark", "dead", "--json").json == []
    listed = run.local("lark", "dead")
    assert (listed.code, listed.out) == (0, "")
    assert "No message to Lark was given up." in listed.err


@pytest.mark.usefixtures("letters")
def test_dead_letters_are_listed_with_their_reasons(run: CommandRunner) -> None:
    lines = run.local("lark", "dead").out.splitlines()
    assert lines[0].split()[:2] == ["3", "2026-11-22"]
    assert lines[0].endswith("oc_1  reply  may have been sent  no 3")
    assert lines[1].strip() == REASON
    assert "not sent" in lines[4]
    found = run.local("lark", "dead", "--json").json
    assert [one["number"] for one in found] == [3, 2, 1]
    assert found[2]["reason"] == REASON


@pytest.mark.usefixtures("letters")
def test_a_dead_letter_is_queued_again(run: CommandRunner) -> None:
    sent = run.local("lark", "resend", "1")
    assert sent.code == 0
    assert "again: 1" in sent.err
    assert "larkspur serve" in sent.err
    assert [one["number"] for one in run.local("lark", "dead", "--json").json] == [3, 2]
    assert run.local("lark", "resend", "1").message.startswith("There is no undelivered message 1.")


@pytest.mark.usefixtures("letters")
def test_what_may_have_been_sent_needs_yes(run: CommandRunner) -> None:
    refused = run.local("lark", "resend", "all")
    assert refused.code == 2
    assert "may appear twice: 2, 3" in refused.message
    assert len(run.local("lark", "dead", "--json").json) == 3
    assert run.local("lark", "resend", "all", "--yes").code == 0
    assert run.local("lark", "dead", "--json").json == []


def test_wrong_usage_is_named(run: CommandRunner) -> None:
    assert run.local("lark", "resend").message.startswith("Usage: larkspur lark dead")
    assert run.local("lark", "dead", "7").code == 2
    assert run.local("lark", "resend", "all").code == 0
