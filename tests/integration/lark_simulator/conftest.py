"""Fixtures of the simulator tests: one SDK, and a simulator and a bot for each test."""

import secrets
from collections.abc import AsyncGenerator, Generator

import pytest

from internal.simulators.lark.model import GROUP_MESSAGES, App
from internal.simulators.lark.rest.scopes import ALL_SCOPES
from internal.simulators.lark.simulator import LarkSim
from tests.support.lark_sdk import Bot, Sdk, open_sdk


@pytest.fixture(scope="session")
def sdk() -> Generator[Sdk]:
    with open_sdk() as opened:
        yield opened


@pytest.fixture
async def sim(anyio_backend: str) -> AsyncGenerator[LarkSim]:
    """A simulator with its own app: the SDK caches tokens by app_id for the whole process.

    The app has all scopes except the one for all messages of groups.
    """
    app = App(f"cli_{secrets.token_hex(8)}", "a secret", scopes=ALL_SCOPES - {GROUP_MESSAGES})
    async with LarkSim([app]) as opened:
        yield opened


@pytest.fixture
async def bot(sdk: Sdk, sim: LarkSim) -> Bot:
    return Bot(sdk, sim, sim.app)
