"""A completion that is asked for again after a crash, and at another gateway of the database."""

import asyncio
import json
import re
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.restarting_gateway import NO_CRASH, restarting_gateway
from tests.support.anthropic_server import Reply, Rules, ScriptedAnthropic
from tests.support.http_client import HttpClient
from tests.support.many_processes import team

pytestmark = pytest.mark.slow

PATH = "/v1/chat/completions"
BODY = {"model": "larkspur", "messages": [{"role": "user", "content": "paint"}]}
RULES = Rules([Reply(text="painted", hold="paint")])


@asynccontextmanager
async def asking(client: HttpClient) -> AsyncGenerator[None]:
    """Ask for the completion; the connection is cut when the block is left."""
    _, writer = await client.connect()
    content = json.dumps(BODY).encode()
    head = {"content-type": "application/json", "content-length": str(len(content))}
    try:
        writer.write(client.head("POST", PATH, head) + content)
        yield
    finally:
        writer.transport.abort()


async def tasks(client: HttpClient) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = (await client.get("/api/tasks")).json()["tasks"]
    return listed


async def test_a_request_after_a_kill_joins_the_run(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    async with (
        asyncio.timeout(120),
        ScriptedAnthropic(RULES) as model,
        restarting_gateway(tmp_path, model, environ, [NO_CRASH] * 2) as gateway,
    ):
        client = await gateway.wait_until_up()
        async with asking(client):
            await model.until_asked(1)
            gateway.signal(signal.SIGKILL)
            await gateway.wait_until_replaced(client)
        client = await gateway.wait_until_up()
        await model.until_asked(2)
        async with asyncio.TaskGroup() as group:
            again = group.create_task(client.post(PATH, BODY))
            model.release("paint")
        assert again.result().json()["choices"][0]["message"]["content"] == "painted"
        assert len(await tasks(client)) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_a_gateway_that_stops_says_so_and_the_next_one_is_joined(
    tmp_path: Path, environ: dict[str, str], *, stream: bool
) -> None:
    body = {**BODY, "stream": stream}
    async with (
        asyncio.timeout(120),
        ScriptedAnthropic(RULES) as model,
        restarting_gateway(tmp_path, model, environ, [NO_CRASH] * 2) as gateway,
    ):
        client = await gateway.wait_until_up()
        async with asyncio.TaskGroup() as group:
            asked = group.create_task(client.post(PATH, body))
            await model.until_asked(1)
            gateway.signal(signal.SIGTERM)
        assert b'"code":"stopping"' in asked.result().body
        if not stream:
            assert asked.result().status == 503
            assert "x-should-retry" not in asked.result().headers
        await gateway.wait_until_replaced(client)
        client = await gateway.wait_until_up()
        model.release("paint")
        reply = await client.post(PATH, body)
        assert "".join(re.findall('"content":"([a-z]*)"', reply.body.decode())) == "painted"
        assert len(await tasks(client)) == 1


@pytest.mark.postgres
async def test_a_request_at_another_gateway_joins_the_run(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    async with (
        asyncio.timeout(120),
        ScriptedAnthropic(RULES) as model,
        team(tmp_path, environ, model) as here,
    ):
        first, second = (await here.serve()).client, (await here.serve("--no-work")).client
        async with asking(first):
            await model.until_asked(1)
        async with asyncio.TaskGroup() as group:
            again = group.create_task(second.post(PATH, {**BODY}))
            model.release("paint")
        assert again.result().json()["choices"][0]["message"]["content"] == "painted"
        assert len(await tasks(first)) == 1
