"""Event webhooks: real events of a gateway, sent to a real server."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.background_task import background_task
from internal.agent.domain.principals import LOCAL_OWNER
from internal.config.loader import load
from internal.hooks.signature import sign
from internal.hooks.signed_post import SignedPoster
from internal.hooks.webhooks import WebhookSender
from tests.support.agent_app import Core, open_agent
from tests.support.anthropic_server import Reply
from tests.support.gateway_process import run_task, running_gateway
from tests.support.hook_server import HookServer, Posted
from tests.support.leaderships import make_leaderships
from tests.support.movable_clock import MovableClock

HELLO = [Reply(text="hello", times=9)]
ENDS = ["workflow.input.received", "workflow.result.*"]


def settings(server: HookServer, *events: str) -> dict[str, str]:
    webhook = {"url": server.url, "secret": "s3cret", "events": list(events or ENDS)}
    return {"LARKSPUR_WEBHOOKS": json.dumps([webhook])}


@asynccontextmanager
async def sending(
    here: Core,
    home: Path,
    environ: dict[str, str],
    clock: MovableClock | None = None,
    owner: str = "gateway-1",
) -> AsyncGenerator[WebhookSender]:
    services = here.services
    leaderships = make_leaderships(services.database, services.stores, owner=owner)
    loaded = load(environ={"LARKSPUR_HOME": str(home), **environ})
    poster = SignedPoster(services.clock)
    sender = WebhookSender(
        loaded.settings.webhooks,
        services.database,
        services.stores,
        broadcaster=services.broadcaster,
        poster=poster,
        clock=clock or services.clock,
        leadership=leaderships.of_webhooks(),
        first_delay_seconds=0.01,
    )
    await sender.open()
    async with background_task(sender.run(services.supervisor)):
        yield sender
    await poster.close()


def events_of(posted: list[Posted]) -> list[dict[str, Any]]:
    return [json.loads(each.body) for each in posted]


async def until_recorded(here: Core) -> None:
    """Wait until the newest event is stored as sent; events without this record are sent again."""
    database, stores = here.services.database, here.services.stores
    newest = (await database.read(stores.events.get_bounds)).head
    async with asyncio.timeout(10):
        while newest not in (await database.read(stores.events.list_readers)).values():
            pass


async def end(here: Core, text: str = "hi") -> list[dict[str, Any]]:
    """Run a task and return its events that the webhook wants."""
    made = await here.submit(text)
    await here.end_of(made)
    names = {"workflow.input.received", "workflow.result.final"}
    return [each for each in await here.durable(made) if each["event"] in names]


async def test_of_two_processes_one_sends(home: Path) -> None:
    async with HookServer() as server, open_agent(home, HELLO) as here:
        async with (
            sending(here, home, settings(server), owner="gateway-2"),
            sending(here, home, settings(server)),
        ):
            stored = await end(here)
            await server.until(2)
            await until_recorded(here)
        async with sending(here, home, settings(server)):
            stored += await end(here)
            posted = await server.until(4)
        assert events_of(posted) == stored


async def test_wanted_events_arrive_signed_and_in_order(home: Path) -> None:
    async with HookServer() as server, open_agent(home, HELLO) as here:
        await end(here)  # before the receiver is known
        async with sending(here, home, settings(server)):
            stored = [*await end(here), *await end(here)]
            posted = await server.until(4)
        assert events_of(posted) == stored
        for each in posted:
            name = each.headers["webhook-id"]
            assert name == json.loads(each.body)["event_id"]
            time = int(each.headers["webhook-timestamp"])
            assert each.headers["webhook-signature"] == sign("s3cret", name, time, each.body)


async def test_a_failed_delivery_is_repeated_before_later_events(home: Path) -> None:
    async with (
        HookServer((500, b""), (302, b""), (200, b"")) as server,
        open_agent(home, HELLO) as here,
    ):
        async with sending(here, home, settings(server)):
            stored = await end(here)
            posted = await server.until(4)
        assert events_of(posted) == [stored[0], stored[0], stored[0], stored[1]]


async def test_an_event_that_is_rejected_is_given_up_and_reported(home: Path) -> None:
    answers = [(400, b"")] * 3 + [(200, b"")]
    async with HookServer(*answers) as server, open_agent(home, HELLO) as here:
        async with sending(here, home, settings(server)):
            stored = await end(here)
            posted = await server.until(4)
        assert events_of(posted) == [stored[0]] * 3 + [stored[1]]
        [entry] = [
            each
            for each in await here.services.gateway.queries.audit_entries(LOCAL_OWNER)
            if each.action == "webhook.given_up"
        ]
        assert entry.target == stored[0]["event_id"]
        assert entry.detail.endswith("answered with the status 400")


async def test_an_old_event_is_sent_once_more_and_given_up(home: Path) -> None:
    clock = MovableClock()
    clock.advance(timedelta(hours=25))
    async with HookServer((500, b"")) as server, open_agent(home, HELLO) as here:
        async with sending(here, home, settings(server), clock):
            stored = await end(here)
            posted = await server.until(2)
        assert events_of(posted) == stored


async def test_events_that_were_stored_without_a_sender_are_sent_later(home: Path) -> None:
    async with HookServer() as server, open_agent(home, HELLO) as here:
        async with sending(here, home, settings(server)):
            first = await end(here)
            await server.until(2)
        second = await end(here)
        async with sending(here, home, settings(server)):
            assert events_of(await server.until_events(4)) == [*first, *second]


async def test_a_receiver_that_was_removed_begins_anew(home: Path) -> None:
    async with HookServer() as server, open_agent(home, HELLO) as here:
        async with sending(here, home, settings(server)):
            pass
        async with sending(here, home, {}):
            await end(here)
        async with sending(here, home, settings(server)):
            stored = await end(here)
            assert events_of(await server.until(2)) == stored


@pytest.mark.slow
async def test_events_survive_kill_9(home: Path, environ: dict[str, str]) -> None:
    async with HookServer((500, b"")) as server:
        given = {**environ, **settings(server)}
        async with running_gateway(given, home) as gateway:
            warning = await gateway.logged("  warning  ")
            assert "the secret of 127.0.0.1:" in warning
            assert "is not valid Base64" in warning
            await run_task(gateway.client, "what is 6*7")
            await server.until(1)  # the receiver fails
            gateway.process.kill()
            await gateway.process.wait()
        count = len(server.requests)
        server.answers = [(200, b"")]
        async with running_gateway(given, home):
            posted = (await server.until(count + 2))[count:]
        assert [each["event"] for each in events_of(posted)] == [
            "workflow.input.received",
            "workflow.result.final",
        ]
        assert len({each.headers["webhook-id"] for each in posted}) == 2
