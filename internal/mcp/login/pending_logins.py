"""Logins of people whose browser comes back to the gateway."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from internal.agent.domain.errors import NotFound
from internal.agent.ports.mcp import LOGIN_URL_SECONDS, LoginAnswer
from internal.mcp.limits import ServerFailure

if TYPE_CHECKING:
    from internal.mcp.login.sign_in import Authorize

logger = logging.getLogger(__name__)

_Who = tuple[str, str]


class PendingLogins:
    """Waits for the answers of browsers, each for one login and once.

    Args:
        seconds: how long a person may take to agree.
    """

    def __init__(self, seconds: float = LOGIN_URL_SECONDS) -> None:
        self._seconds = seconds
        self._answers: dict[str, tuple[_Who, asyncio.Future[LoginAnswer]]] = {}
        self._running: dict[_Who, asyncio.Task[None]] = {}

    async def start(
        self, who: _Who, sign_in: "Callable[[Authorize], Coroutine[Any, Any, None]]"
    ) -> str:
        """Start a login and return the URL for the person. An earlier one of `who` is given up.

        Args:
            who: a server and a principal.
            sign_in: runs the login to its end.

        Raises:
            LarkspurError: the login failed before there was a URL.
        """
        if (earlier := self._running.pop(who, None)) is not None:
            earlier.cancel()
        offered: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def authorize(url: str, state: str) -> LoginAnswer:
            answer: asyncio.Future[LoginAnswer] = asyncio.get_running_loop().create_future()
            self._answers[state] = who, answer
            offered.set_result(url)
            try:
                async with asyncio.timeout(self._seconds):
                    return await answer
            except TimeoutError as error:
                minutes = f"{self._seconds / 60:g} minutes"
                raise ServerFailure(f"nobody signed in within {minutes}") from error
            finally:
                self._answers.pop(state, None)

        task = asyncio.create_task(sign_in(authorize))
        self._running[who] = task
        task.add_done_callback(partial(self._note_end, who))
        either: list[asyncio.Future[Any]] = [task, offered]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not offered.done():
            await task
            raise ServerFailure("it does not demand a login")
        return offered.result()

    async def finish(self, answer: LoginAnswer) -> str:
        """Give an answer to its login, wait for the end, and return the name of the server.

        Raises:
            NotFound: no login waits for this answer.
            LarkspurError: the login failed.
        """
        who, waiting = self._answers.pop(answer.state, (("", ""), None))
        task = self._running.get(who)
        if waiting is None or waiting.done() or task is None:
            raise NotFound(
                "No sign-in waits for this answer: it has been used, or is older than"
                f" {self._seconds / 60:g} minutes. Start it again.",
                reason_code="no_sign_in",
                minutes=round(self._seconds / 60),
            )
        waiting.set_result(answer)
        await asyncio.wait({task})
        if task.cancelled():
            raise NotFound(
                "The sign-in was given up. Start it again.", reason_code="sign_in_given_up"
            )
        task.result()
        return who[0]

    async def close(self) -> None:
        """Give up all logins."""
        running = [*self._running.values()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    def _note_end(self, who: _Who, task: asyncio.Task[None]) -> None:
        if self._running.get(who) is task:
            del self._running[who]
        if not task.cancelled() and (error := task.exception()) is not None:
            fields = {"server": who[0], "reason": str(error)}
            logger.warning("mcp login failed", extra=fields)
