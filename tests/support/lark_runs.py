"""Runs that messages of a simulated Lark start or steer."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from internal.agent.domain.chats import edit_id
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import Task
from internal.agent.store.database import Read, Row, Statement
from tests.support.agent_app import plan
from tests.support.anthropic_server import Call, Reply
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import APP, QUIET, LarkGateway, shown_text

T = TypeVar("T")


def user_texts(request: dict[str, Any]) -> list[str]:
    """Return the texts of the user messages of a request to the model."""
    return [
        "".join(part["text"] for part in message["content"] if part["type"] == "text")
        if isinstance(message["content"], list)
        else message["content"]
        for message in request["messages"]
        if message["role"] == "user"
    ]


def calls(lark: LarkGateway, part: str) -> int:
    return sum(entry.kind == "call" and part in entry.what for entry in lark.sim.log)


INTERRUPTS = with_values(QUIET, busy_mode="interrupt")


async def handled(lark: LarkGateway, name: str) -> bool:
    inbox = lark.core.services.stores.inbox
    place = await lark.core.services.database.read(
        partial(inbox.get_state, "lark", APP.app_id, name)
    )
    return place is not None and place.status == "handled"


async def until(lark: LarkGateway, wanted: Callable[[], Awaitable[T | None]]) -> T:
    """Return the first true value."""
    async with asyncio.timeout(20):
        while not (found := await wanted()):
            await lark.sim.lark.changed_within(0.02)
    return found


async def tasks(lark: LarkGateway) -> list[Task]:
    """Return all tasks, oldest first."""
    return (await lark.core.services.gateway.queries.tasks(LOCAL_OWNER))[::-1]


async def statuses(lark: LarkGateway) -> list[str]:
    return [task.status for task in await tasks(lark)]


async def until_statuses(lark: LarkGateway, *wanted: str) -> None:
    async def so() -> bool:
        return await statuses(lark) == list(wanted)

    await until(lark, so)


def reply_to(lark: LarkGateway, message_id: str) -> str | None:
    """Return the bot's reply to a message."""
    return next(shown_text(lark.sim, one) for one in lark.from_bot() if one.parent_id == message_id)


def said_to_model(lark: LarkGateway, number: int = -1) -> str:
    return json.dumps(lark.core.model.requests[number]["messages"], ensure_ascii=False)


TOLD = "(I edited an earlier message. It now says:)"


async def edit(lark: LarkGateway, message_id: str, words: str, **more: Any) -> None:
    """Edit a message, and wait until the bot has handled the edit."""
    message = lark.sim.lark.state.messages[message_id]
    await lark.sim.edit_text(message.sender, message_id, words, **more)
    name = edit_id(message_id, str(message.updated))

    async def taken() -> bool:
        inbox = lark.core.services.stores.inbox
        state = await lark.core.services.database.read(
            partial(inbox.get_state, "lark", APP.app_id, name)
        )
        return state is not None and state.status in {"handled", "assigned", "delivered"}

    await until(lark, taken)


PLANNED = [
    Reply(calls=[plan("look around", "tell", title="Looking")]),
    Reply(calls=[Call("list_dir", {"path": "."})]),
    Reply("All done.", hold="go"),
]


async def until_closed(lark: LarkGateway) -> None:
    """Return when nothing is left to send or to show."""
    await lark.settled()
    database = lark.core.services.database
    while await database.read(open_displays):
        await lark.sim.lark.changed_within(0.05)


def open_displays() -> Read[list[Row]]:
    """Return the displays that are not finished, held or not."""
    return (yield Statement("abandoned_run_displays", (f"lark:{APP.app_id}", "9999")))


STOPPED_NOTHING = {
    "en": "This was written before the current task began: nothing was stopped.",
    "zh": "这条消息写于当前任务开始之前\uff1a没有停止任何任务。",
}
