"""The transaction behind the edit of a message."""

from functools import partial

import msgspec
import pytest

from internal.agent.app.edited_messages import EditResult, MessageEdit, edit_message
from internal.agent.app.runs.creation import Submission, new_task_ids
from internal.agent.app.task_commands import interrupt_session, steer
from internal.agent.domain.chats import InboundMessage, edit_id, edited_message_id
from internal.agent.domain.ids import RunId
from internal.agent.domain.tasks import Attachment, RunSpec
from internal.agent.store.chats import Steering
from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.store_records import T0, T1, claim_run
from tests.support.task_commands import ANN, Commands

FILE = Attachment("a.txt", "text/plain", "lark:app/m1/k?type=file", "", 0)


@pytest.fixture
def commands(database: Database, stores: Stores) -> Commands:
    return Commands(database, stores)


async def edit(
    commands: Commands, message_id: str, text: str, version: str = "1"
) -> tuple[EditResult, list[str]]:
    """Edit a message; return the result and the events of its run."""
    name = edit_id(message_id, version)
    row = InboundMessage("lark", "app", name, "oc_1", "lark:app:", "{}", T0)
    await commands.database.write(partial(commands.stores.inbox.accept, row))
    now = Submission(text, RunSpec(), "lark", attachments=(FILE,), prompt=f"Ann: {text}")
    told = msgspec.structs.replace(now, instruction=f"edited: {text}", prompt="")
    row = msgspec.structs.replace(row, principal=ANN.id)
    work = partial(edit_message, commands.stores, MessageEdit(row, now, told), now=T1)
    result, _, events = await commands.database.write(work)
    return result, [event.event for event in events]


async def unread(commands: Commands, run_id: RunId) -> list[Steering]:
    return await commands.database.read(partial(commands.stores.inbox.list_undelivered, run_id))


async def accepted(commands: Commands) -> list[str]:
    work = partial(commands.stores.inbox.list_accepted, "lark", "app", 9)
    return [each.message.message_id for each in await commands.database.read(work)]


def test_the_id_of_an_edit_names_its_message() -> None:
    assert edited_message_id(edit_id("om_1", "17")) == "om_1"
    assert edited_message_id("om_1") == "om_1"
    assert edited_message_id("recall:om_1") == "recall:om_1"


async def test_a_task_that_waits_gets_the_new_text(commands: Commands) -> None:
    submitted = await commands.submit(await commands.message("m1", "old words"), ANN)
    assert await edit(commands, "m1", "new words") == ("replaced", ["workflow.input.edited"])
    task = await commands.task(submitted)
    assert (task.instruction, task.prompt) == ("new words", "Ann: new words")
    assert task.attachments == (FILE,)
    session = await commands.database.read(
        partial(commands.stores.sessions.get, submitted.session_id)
    )
    assert session is not None
    assert session.title == "new words"
    assert await edit(commands, "m1", "new words", "2") == ("unchanged", [])
    assert await accepted(commands) == []


async def test_the_title_of_an_earlier_task_stays(commands: Commands) -> None:
    await commands.submit(await commands.message("m1", "first"), ANN)
    submitted = await commands.submit(await commands.message("m2", "second"), ANN)
    assert (await edit(commands, "m2", "other"))[0] == "replaced"
    session = await commands.database.read(
        partial(commands.stores.sessions.get, submitted.session_id)
    )
    assert session is not None
    assert session.title == "first"


async def test_a_run_that_works_is_told_the_newest_text_once(commands: Commands) -> None:
    submitted = await commands.submit(await commands.message("m1", "old"), ANN)
    await claim_run(commands.database, commands.stores, await commands.run(submitted))
    assert await edit(commands, "m1", "old") == ("unchanged", [])
    for version, text in enumerate(("new", "newer"), start=2):
        assert await edit(commands, "m1", text, str(version)) == ("told", [])
    assert (await edit(commands, "m1", "newer", "9"))[0] == "unchanged"
    [told] = await unread(commands, submitted.run_id)
    assert (told.text, told.principal, told.attachments) == ("edited: newer", ANN.id, (FILE,))
    assert (await commands.task(submitted)).instruction == "old"
    assert await accepted(commands) == []


async def test_steering_that_is_not_read_is_replaced(commands: Commands) -> None:
    submitted = await commands.submit(await commands.message("m1", "count"), ANN)
    await claim_run(commands.database, commands.stores, await commands.run(submitted))
    message = await commands.message("m2", "faster")
    await commands.database.write(
        partial(steer, commands.stores, message, ANN, ids=new_task_ids(), now=T1)
    )
    assert await edit(commands, "m2", "slower") == ("replaced", [])
    [told] = await unread(commands, submitted.run_id)
    assert (told.text, told.model_text, told.message_id) == ("slower", "Ann: slower", "m2")


async def test_one_of_several_messages_of_a_waiting_task_is_told_to_its_run(
    commands: Commands,
) -> None:
    submitted = await commands.submit(await commands.message("m1", "count"), ANN)
    await claim_run(commands.database, commands.stores, await commands.run(submitted))
    for work, (name, text) in (
        (steer, ("m2", "to ten")),
        (interrupt_session, ("m3", "to twenty")),
    ):
        message = await commands.message(name, text)
        await commands.database.write(
            partial(work, commands.stores, message, ANN, ids=new_task_ids(), now=T1)
        )
    assert (await edit(commands, "m2", "to five"))[0] == "told"
    assert (await edit(commands, "m3", "to six"))[0] == "told"


async def test_an_edit_is_too_late_for_an_ended_or_stopped_run(commands: Commands) -> None:
    await commands.submit(await commands.message("m1", "count"), ANN)
    await commands.recall("m1")
    assert await edit(commands, "m1", "count more") == ("too late", [])
    submitted = await commands.submit(await commands.message("m2", "count"), ANN)
    await claim_run(commands.database, commands.stores, await commands.run(submitted))
    await commands.recall("m2")
    assert await edit(commands, "m2", "count more") == ("too late", [])
    assert await edit(commands, "unknown", "count") == ("too late", [])
    assert await accepted(commands) == []


async def test_a_recall_withdraws_the_edit(commands: Commands) -> None:
    submitted = await commands.submit(await commands.message("m1", "count"), ANN)
    await claim_run(commands.database, commands.stores, await commands.run(submitted))
    await edit(commands, "m1", "count more")
    assert await commands.recall("m1") == ("stopped", submitted.run_id)
    assert await unread(commands, submitted.run_id) == []
