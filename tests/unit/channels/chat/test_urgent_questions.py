"""Recipients of urgent alerts about a waiting approval."""

import asyncio

import pytest

from internal.agent.app.supervision import Supervisor
from internal.channels.chat.policy import ChatUsers
from internal.channels.chat.urgent_questions import UrgentQuestions
from internal.settings.chat import ChatAccess
from tests.support.chat_settings import with_values
from tests.support.echo_app import SETTINGS, EchoApp


def urgent(app: EchoApp, *operators: str, minutes: int | None = 5) -> UrgentQuestions:
    access = ChatAccess(operate=operators)
    settings = with_values(SETTINGS, access=access, urgent_after_minutes=minutes)
    people = ChatUsers(app.transport, app.gateway.access, settings)
    return UrgentQuestions(app.transport, app.gateway, people, settings)


async def check(app: EchoApp, questions: UrgentQuestions, count: int) -> list[tuple[str, str]]:
    """Run the loop until this many people were alerted; return the messages and the people."""
    loop = asyncio.create_task(questions.run(Supervisor(app.clock)))
    await app.service.until(lambda: len(app.service.urged) == count)
    loop.cancel()
    await asyncio.wait([loop])
    return app.service.urged


@pytest.mark.parametrize(
    ("operators", "alerted"),
    [(("mei", "boss"), ["mei"]), (("*",), ["mei"]), (("boss", "deputy"), ["boss", "deputy"])],
)
async def test_who_asked_comes_before_the_other_operators(
    app: EchoApp, operators: tuple[str, ...], alerted: list[str]
) -> None:
    await app.ask(1)  # no approval
    asked = await app.ask(2, is_approval=True)
    found = await check(app, urgent(app, *operators), len(alerted))
    assert found == [("post-2", user) for user in alerted]
    assert not await app.gateway.delivery.mark_urged(asked.question.id)


async def test_nobody_is_alerted_without_the_setting(app: EchoApp) -> None:
    await app.ask(is_approval=True)
    async with asyncio.timeout(10):
        await urgent(app, "mei", minutes=None).run(Supervisor(app.clock))
    assert app.service.urged == []
