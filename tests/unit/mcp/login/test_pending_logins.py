"""Logins that wait for a browser: one use, an end, and one at a time for a person."""

import asyncio

import pytest

from internal.agent.domain.errors import NotFound
from internal.agent.ports.mcp import LoginAnswer
from internal.mcp.limits import ServerFailure
from internal.mcp.login.pending_logins import PendingLogins
from internal.mcp.login.sign_in import Authorize

WHO = ("docs", "local")


class SignIn:
    """A login at an authorization server that knows one state."""

    def __init__(self, state: str = "state") -> None:
        self.state = state
        self.codes: list[str] = []

    async def run(self, authorize: Authorize) -> None:
        answer = await authorize(f"https://auth.example/?state={self.state}", self.state)
        if answer.error:
            raise ServerFailure(answer.error)
        self.codes.append(answer.code)


async def test_an_answer_finishes_its_login_once() -> None:
    pending, first, second = PendingLogins(), SignIn("one"), SignIn("two")
    assert await pending.start(WHO, first.run) == "https://auth.example/?state=one"
    await pending.start(("docs", "lark:other"), second.run)
    for wrong in ("", "three"):
        with pytest.raises(NotFound, match="No sign-in waits"):
            await pending.finish(LoginAnswer("evil", wrong))
    assert await pending.finish(LoginAnswer("code", "one")) == "docs"
    with pytest.raises(NotFound, match="it has been used, or is older than 10 minutes"):
        await pending.finish(LoginAnswer("again", "one"))
    assert (first.codes, second.codes) == (["code"], [])
    await pending.close()


async def test_a_failure_is_that_of_the_answer_or_of_the_start() -> None:
    pending = PendingLogins()
    await pending.start(WHO, SignIn().run)
    with pytest.raises(ServerFailure, match="access_denied"):
        await pending.finish(LoginAnswer("", "state", error="access_denied"))

    async def fails(_authorize: Authorize) -> None:
        raise ServerFailure("no metadata")

    with pytest.raises(ServerFailure, match="no metadata"):
        await pending.start(WHO, fails)


async def test_a_second_login_of_a_person_replaces_the_first() -> None:
    pending, first, second = PendingLogins(), SignIn("one"), SignIn("two")
    await pending.start(WHO, first.run)
    await pending.start(WHO, second.run)
    await asyncio.wait_for(pending.finish(LoginAnswer("code", "two")), 10)
    with pytest.raises(NotFound):
        await pending.finish(LoginAnswer("code", "one"))
    assert (first.codes, second.codes) == ([], ["code"])


async def test_a_login_ends_after_its_time_and_when_the_gateway_stops() -> None:
    pending, late = PendingLogins(seconds=0.0), SignIn()
    await pending.start(WHO, late.run)
    async with asyncio.timeout(10):
        while pending._running:  # noqa: ASYNC110 - it ends by itself
            await asyncio.sleep(0)
    with pytest.raises(NotFound, match="older than 0 minutes"):
        await pending.finish(LoginAnswer("code", "state"))
    stopped = PendingLogins()
    await stopped.start(WHO, SignIn().run)
    await stopped.close()
    with pytest.raises(NotFound):
        await stopped.finish(LoginAnswer("code", "state"))
