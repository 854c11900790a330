"""The web channel on a gateway that runs its tasks with a scripted model."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from internal.agent.app.runs.creation import Submitted
from internal.channels.mcp.server import McpServer
from internal.channels.web.auth import Logins
from internal.channels.web.services import WebServices
from tests.support.agent_app import Core, open_agent
from tests.support.anthropic_server import Reply as ModelReply
from tests.support.anthropic_server import Rules
from tests.support.http_client import HttpClient, Reply
from tests.support.web_app import NOT_BUILT, TOKEN, report_healthy, serve, server_settings


@dataclass
class WorkingWebApp:
    """A running web server and the gateway that runs its tasks."""

    core: Core
    services: WebServices
    client: HttpClient

    async def task(self, text: str = "write a report", **fields: Any) -> Submitted:
        """Create a task over HTTP."""
        reply = await self.client.post("/api/tasks", {"task": text, **fields})
        assert reply.status == 201, reply
        return msgspec.convert(reply.json(), Submitted)

    async def asked(self, made: Submitted, number: int = 1) -> dict[str, Any]:
        """Wait for the n-th question of a run and return its view."""
        seen: list[str] = []

        def is_wanted(envelope: dict[str, Any]) -> bool:
            asked = envelope["event"] == "workflow.question.asked"
            if asked and envelope["run_id"] == made.run_id:
                seen.append(envelope["payload"]["question_id"])
            return len(seen) == number

        await self.core.until(made.session_id, is_wanted)
        reply = await self.client.get(f"/api/questions/{seen[-1]}")
        assert reply.status == 200, reply
        question: dict[str, Any] = reply.json()
        return question

    async def answer(self, question: Mapping[str, Any], **given: Any) -> Reply:
        """Answer a question over HTTP."""
        return await self.client.post(f"/api/questions/{question['question_id']}/answer", given)

    async def end_of(self, made: Submitted) -> list[dict[str, Any]]:
        """Return the envelopes of a run up to its end."""
        events = await self.core.end_of(made)
        return [envelope for envelope in events if envelope["run_id"] == made.run_id]


@asynccontextmanager
async def open_working_web_app(
    home: Path,
    script: list[ModelReply] | Rules,
    environ: Mapping[str, str] | None = None,
    **settings: Any,
) -> AsyncGenerator[WorkingWebApp]:
    """Serve a gateway with a scripted model on the data of `home`."""
    async with (
        open_agent(home, script, environ) as here,
        serve_gateway(here, home, **settings) as (services, client),
    ):
        yield WorkingWebApp(here, services, client)


@asynccontextmanager
async def serve_gateway(
    here: Core, home: Path, **settings: Any
) -> AsyncGenerator[tuple[WebServices, HttpClient]]:
    """Run the web server of a gateway while the block runs."""
    app = here.services
    services = WebServices(
        gateway=app.gateway,
        broadcaster=app.broadcaster,
        defaults=app.defaults,
        token=lambda: TOKEN,
        settings=server_settings(settings),
        health=report_healthy,
        version="1.2.3",
        clock=app.clock,
        documents=app.documents,
        logins=Logins(home),
        page=NOT_BUILT,
        mcp=McpServer(app.gateway, app.defaults, "1.2.3"),
        plain=app.plain,
    )
    async with serve(services) as (_, client):
        yield services, client
