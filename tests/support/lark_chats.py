"""Chats of a simulated Lark: people, cards, posts and files."""

from functools import partial
from typing import Any

from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.questions import QuestionRecord
from internal.agent.domain.tasks import chat_name
from internal.simulators.lark.model import App, Chat
from internal.simulators.lark.user_actions import MediaKind, MessageDraft, as_reply, upload_draft
from tests.support.agent_app import plan
from tests.support.anthropic_server import Call, Reply, seen_in
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import APP, QUIET, LarkGateway
from tests.support.lark_runs import until

ALONE = with_values(QUIET, auto_chat_context=False)


EAR = App(APP.app_id, APP.secret, hears_all=True)


def post(*rows: list[dict[str, Any]], title: str = "") -> MessageDraft:
    return MessageDraft("post", {"title": title, "content": list(rows)})


TOUCH = Call("shell", {"command": "touch ran"})


def needs(*calls: Call) -> list[Reply]:
    """Return a run that plans, makes these calls, says that it is over; then another task's."""
    return [
        Reply(calls=[plan("do it")]),
        Reply(calls=list(calls)),
        Reply("over"),
        Reply("another"),
        Reply("and another"),
    ]


async def open_questions(
    lark: LarkGateway, count: int, chat: Chat | None = None
) -> list[QuestionRecord]:
    """Return the open questions of a chat once there are this many and their cards are stored.

    Cards are stored a moment after they are visible.
    """
    gateway, stores = lark.core.services.gateway, lark.core.services.stores
    name = chat_name("lark", APP.app_id, (chat or lark.dm).chat_id)

    open_: list[QuestionRecord] = []

    async def are_shown() -> bool:
        open_[:] = await gateway.queries.open_questions(name)
        keys = [f"{each.question.id}:asked" for each in open_]
        ids = [
            await lark.core.services.database.read(partial(stores.outbox.get_remote_id, key))
            for key in keys
        ]
        return len(open_) == count and all(ids)

    await until(lark, are_shown)
    return open_


async def card_of(lark: LarkGateway, asked: QuestionRecord) -> str:
    """Return the message that shows a question."""
    stores, key = lark.core.services.stores, f"{asked.question.id}:asked"
    return await lark.core.services.database.read(partial(stores.outbox.get_remote_id, key))


def results(lark: LarkGateway) -> str:
    """Return the last tool result that the model received."""
    return seen_in(lark.core.model.requests[-1]).last_result


async def code_for(lark: LarkGateway, role: str = "operate") -> str:
    access = lark.core.services.gateway.access
    return (await access.create_code(role, LOCAL_OWNER, "cli")).code  # type: ignore[arg-type]  # a role


async def send_file(
    lark: LarkGateway, name: str, content: bytes, kind: MediaKind = "file", reply_to: str = ""
) -> str:
    """Send a file as the first person to the bot; return the message's id."""
    draft = upload_draft(lark.sim.lark.state, name, content, kind)
    return await lark.sim.send(lark.person, lark.dm, as_reply(draft, reply_to, in_thread=False))
