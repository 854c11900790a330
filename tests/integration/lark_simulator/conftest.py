"""What the tests of the local Lark share: one SDK, and for each test a Lark and a bot."""

import secrets
from collections.abc import AsyncGenerator, Generator

import pytest

from internal.simulators.lark.model import App
from internal.simulators.lark.simulator import LarkSim
from tests.support.lark_sdk import Bot, Sdk, open_sdk


@pytest.fixture(scope="session")
def sdk() -> Generator[Sdk]:
    with open_sdk() as opened:
        yield opened


@pytest.fixture
async def sim(anyio_backend: str) -> AsyncGenerator[LarkSim]:
    """A Lark with an app of its own: the SDK keeps tokens by app_id, for the whole process."""
    async with LarkSim([App(f"cli_{secrets.token_hex(8)}", "a secret")]) as opened:
        yield opened


@pytest.fixture
async def bot(sdk: Sdk, sim: LarkSim) -> Bot:
    return Bot(sdk, sim, sim.app)
