"""A terminal session whose gateway gives fixed answers."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from internal.agent.domain.plans import read_steps
from internal.channels.cli.application import UiChoices
from internal.channels.cli.client import GatewayClient
from internal.channels.cli.render.theme import UNICODE
from internal.channels.cli.repl.services import ReplServices
from internal.channels.cli.repl.session import ReplSession, TaskChoices
from internal.channels.cli.transports.http import HttpEndpoint
from internal.channels.cli.transports.threaded import ThreadedHttpTransport
from tests.support.http_answers import AnsweringServer

_TIMEOUT_SECONDS = 30


class GatewaySession:
    """A session, the gateway's answers, and a way to wait for visible changes."""

    def __init__(self, server: AnsweringServer) -> None:
        self.session = ReplSession(TaskChoices({}), UNICODE, "en")
        self.restored: list[str] = []
        self._server = server
        self._changed = asyncio.Event()
        self.session.redraw = self._changed.set
        self.session.restore_input = self.restored.append

    def connect(self, url: str = "") -> None:
        """Give the session its services, with the gateway at another URL if one is given."""
        endpoint = HttpEndpoint(url or self._server.url, lambda: "token")
        self.session.set_services(
            ReplServices(
                client=GatewayClient(ThreadedHttpTransport(endpoint, lambda: None)),
                ui=UiChoices(),
                language="en",
                tools=list,
                instructions=lambda _folder: [],
                models=list,
                doctor=list,
                check_rule=lambda _rule, _allows: None,
                check_network=lambda _hosts: None,
                decide=_decide,
                read_steps=read_steps,
            )
        )

    def answer(self, path: str, body: object, status: int = 200) -> None:
        """Let the gateway answer the requests of a path."""
        self._server.answers[path] = (status, json.dumps(body).encode())

    def refuse(self, path: str, message: str, status: int = 409, code: str = "conflict") -> None:
        """Let the gateway refuse the requests of a path."""
        self.answer(path, {"error": {"code": code, "message": message}}, status)

    @property
    def bodies(self) -> list[bytes]:
        """The bodies of the requests so far."""
        return self._server.bodies

    def notify(self) -> None:
        """Report a change that the session itself does not report."""
        self._changed.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds after a change."""
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            while not holds():
                await self._changed.wait()
                self._changed.clear()


def _decide(_question: Mapping[str, Any], text: str) -> dict[str, Any]:
    if text in {"yes", "no"}:
        return {"decision": "approve" if text == "yes" else "reject"}
    return {"decision": "text", "text": text}
