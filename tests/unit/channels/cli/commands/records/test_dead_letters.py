"""`larkspur dead-letters`."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from internal.agent.domain.chats import OutgoingMessage
from internal.agent.store.stores import Stores
from internal.storage.database_url import open_database
from tests.support.command_runner import CommandRunner

REASON = "Lark rejected (230002): the bot is not in the chat (log id 2026abc)"
AT = "2026-11-22T10:00:00.000Z"


@pytest.fixture
def letters(home: Path, run: CommandRunner) -> None:
    """Messages to Lark that were given up: one was not sent, two may have been."""
    run.local("dead-letters")  # creates the database
    asyncio.run(_add(home / "larkspur.db"))


async def _add(path: Path) -> None:
    outbox = Stores().outbox
    async with open_database(path) as database:
        for number in (1, 2, 3):
            outgoing = OutgoingMessage(f"key-{number}", "lark", "cli_a", "oc_1", "", f"no {number}")
            await database.write(partial(outbox.add, outgoing, AT))
            give_up = partial(outbox.give_up, number, REASON, f"2026-11-22T10:0{number}:00.000Z")
            await database.write(partial(give_up, unconfirmed=number > 1))


def listed(run: CommandRunner) -> list[str]:
    return [one["id"] for one in run.local("dead-letters", "--json").json]


def test_no_dead_letters_is_an_empty_list(run: CommandRunner) -> None:
    assert run.local("dead-letters", "--json").json == []
    found = run.local("dead-letters", "list")
    assert (found.code, found.out) == (0, "")
    assert "No message and no run was given up." in found.err


@pytest.mark.usefixtures("letters")
def test_dead_letters_are_listed_with_their_reasons(run: CommandRunner) -> None:
    lines = run.local("dead-letters").out.splitlines()
    assert lines[0].split()[:2] == ["outgoing-3", "2026-11-22"]
    assert lines[0].endswith("oc_1  may have been sent  no 3")
    assert lines[1].strip() == REASON
    assert "not sent" in lines[4]
    found = run.local("dead-letters", "--json").json
    assert [one["id"] for one in found] == ["outgoing-3", "outgoing-2", "outgoing-1"]
    assert found[2]["reason"] == REASON


@pytest.mark.usefixtures("letters")
def test_a_dead_letter_is_retried(run: CommandRunner) -> None:
    retried = run.local("dead-letters", "retry", "outgoing-1")
    assert retried.code == 0
    assert "again: 1" in retried.err
    assert "larkspur serve" in retried.err
    assert listed(run) == ["outgoing-3", "outgoing-2"]
    again = run.local("dead-letters", "retry", "outgoing-1")
    assert "No id begins or ends with outgoing-1" in again.message


@pytest.mark.usefixtures("letters")
def test_what_may_have_been_sent_needs_yes(run: CommandRunner) -> None:
    refused = run.local("dead-letters", "retry", "all")
    assert refused.code == 2
    assert "may appear twice: outgoing-2, outgoing-3" in refused.message
    assert len(listed(run)) == 3
    assert run.local("dead-letters", "retry", "all", "--yes").code == 0
    assert listed(run) == []


@pytest.mark.usefixtures("letters")
def test_dead_letters_are_dismissed(run: CommandRunner) -> None:
    assert run.local("dead-letters", "dismiss", "outgoing-2").code == 0
    assert listed(run) == ["outgoing-3", "outgoing-1"]
    assert "Dismissed: 2" in run.local("dead-letters", "dismiss", "all").err
    assert listed(run) == []


@pytest.mark.usefixtures("letters")
def test_the_doctor_counts_dead_letters(run: CommandRunner) -> None:
    [found] = [line for line in run("doctor").out.splitlines() if "dead letters" in line]
    assert found == (
        "warn  dead letters: Given up and waiting for you: 3 (messages and runs)."
        " larkspur dead-letters lists them."
    )
    run.local("dead-letters", "dismiss", "all")
    assert "dead letters" not in run("doctor").out


def test_wrong_usage_is_named(run: CommandRunner) -> None:
    assert run.local("dead-letters", "retry").message.startswith("Usage: larkspur dead-letters")
    assert run.local("dead-letters", "list", "7").code == 2
    assert run.local("dead-letters", "retry", "all").code == 0
