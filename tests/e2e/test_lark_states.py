"""The state of the Lark channel, as `larkspur doctor` and the page tell it."""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from internal.simulators.lark.simulator import LarkSim
from tests.support.cli_environment import until_line
from tests.support.gateway_process import LARKSPUR
from tests.support.http_client import HttpClient
from tests.support.lark_gateway import APP
from tests.support.lark_process import WRONG, replies, served
from tests.support.openai_server import ScriptedOpenAI
from tests.support.scripted_model import Reply

pytestmark = pytest.mark.slow


async def doctor(environ: Mapping[str, str]) -> list[str]:
    """Return the doctor's lines about channels."""
    process = await asyncio.create_subprocess_exec(
        *(LARKSPUR, "doctor"), env=dict(environ), stdin=DEVNULL, stdout=PIPE
    )
    out, _ = await process.communicate()
    return [line for line in out.decode().splitlines() if "lark" in line.partition(": ")[0]]


async def findings(client: HttpClient) -> list[dict[str, Any]]:
    """Return the findings that the page shows about the app of the running channel."""
    answer = await client.request("POST", "/api/channels/lark/check", {})
    found: list[dict[str, Any]] = answer.json()["findings"]
    return found


async def test_the_simulator_is_called_one(home: Path, environ: dict[str, str]) -> None:
    gateway = await asyncio.create_subprocess_exec(
        *(LARKSPUR, "serve", "--port", "0", "--lark-sim"),
        env=environ,
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=PIPE,
    )
    try:
        await until_line(gateway, gateway.stderr, b"Lark connection connected")
        channel, app = await doctor(environ)
    finally:
        gateway.terminate()
        await gateway.communicate()
    assert channel.startswith("ok    channel lark: the simulator of Lark: connected, since 20")
    assert channel.endswith("; last event: none yet.")
    assert app == "ok    lark: No app of Lark is set up."


async def test_an_app_is_connected_until_its_secret_is_wrong(tmp_path: Path) -> None:
    environ = {"LARKSPUR_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    lacking = replace(APP, scopes=APP.scopes - {"im:resource"})
    async with LarkSim([lacking], speed=100.0) as sim, ScriptedOpenAI([Reply("Hello.")]) as model:
        async with served(tmp_path, sim, model) as gateway:
            first = await gateway.until_health("connected", sim)
            assert (first["ok"], first["last_event"]) == (True, "")
            await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "hello")
            await sim.until(lambda _: replies(sim) == ["Hello."])
            health = await gateway.lark_health()
            assert health["since"] == first["since"] <= health["last_event"]
            [channel, *_] = await doctor(environ)
            assert channel == (
                f"ok    channel lark: connected, since {first['since']};"
                f" last event: {health['last_event']}."
            )
            missing = [
                each for each in await findings(gateway.client) if "im:resource" in str(each)
            ]
            assert [each["state"] for each in missing] == ["warn"]
        async with served(tmp_path, sim, model, **WRONG) as gateway:
            refused = await gateway.until_health("refused", sim)
            [channel, *_] = await doctor(environ)
            assert channel.startswith(f"warn  channel lark: {refused['detail']}, since ")
            assert "Settings → Lark" in channel
            [wrong] = await findings(gateway.client)
            assert wrong["state"] == "fail"
            assert "app_secret" in wrong["advice"]
