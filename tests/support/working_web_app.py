"""The web door in front of a whole gateway, which runs its tasks with a scripted model."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from internal.agent.app.runs.creation import Submitted
from internal.channels.web.auth import Logins
from internal.channels.web.channel import WebDoor
from tests.support.agent_app import Core, core
from tests.support.anthropic_server import Reply as ModelReply
from tests.support.anthropic_server import Rules
from tests.support.http_client import HttpClient, Reply
from tests.support.web_app import NOT_BUILT, TOKEN, healthy, serve, unbound


@dataclass
class WorkingHouse:
    """A door that is open, and the gateway behind it, which runs its tasks."""

    core: Core
    door: WebDoor
    client: HttpClient

    async def task(self, text: str = "write a report", **fields: Any) -> Submitted:
        """Give a task over HTTP."""
        reply = await self.client.post("/api/tasks", {"task": text, **fields})
        assert reply.status == 201, reply
        return msgspec.convert(reply.json(), Submitted)

    async def asked(self, made: Submitted, number: int = 1) -> dict[str, Any]:
        """Wait for the question of that number of a run and return it as the door shows it."""
        seen: list[str] = []

        def is_it(envelope: dict[str, Any]) -> bool:
            asked = envelope["event"] == "workflow.question.asked"
            if asked and envelope["run_id"] == made.run_id:
                seen.append(envelope["payload"]["question_id"])
            return len(seen) == number

        await self.core.until(made.session_id, is_it)
        reply = await self.client.get(f"/api/questions/{seen[-1]}")
        assert reply.status == 200, reply
        shown: dict[str, Any] = reply.json()
        return shown

    async def answer(self, question: Mapping[str, Any], **given: Any) -> Reply:
        """Answer a question over HTTP."""
        return await self.client.post(f"/api/questions/{question['question_id']}/answer", given)

    async def end_of(self, made: Submitted) -> list[dict[str, Any]]:
        """Return the envelopes of a run up to its end."""
        events = await self.core.end_of(made)
        return [envelope for envelope in events if envelope["run_id"] == made.run_id]


@asynccontextmanager
async def open_working_house(
    home: Path, script: list[ModelReply] | Rules, **settings: Any
) -> AsyncGenerator[WorkingHouse]:
    """Open a door on a gateway whose model is scripted; leaving it is a restart's first half."""
    async with core(home, script) as here:
        house = here.house
        door = WebDoor(
            gateway=house.gateway,
            broadcaster=house.broadcaster,
            attachments=house.attachments,
            defaults=house.defaults,
            token=TOKEN,
            settings=unbound(settings),
            health=healthy,
            version="1.2.3",
            clock=house.clock,
            logins=Logins(TOKEN, home / "logins.json"),
            page=NOT_BUILT,
        )
        async with serve(door) as (_, client):
            yield WorkingHouse(here, door, client)
