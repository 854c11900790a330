"""Random kills during a mixed workload: tasks, steering, stops, questions, terminals, restarts.

`make test SLOW=yes` runs one short episode; `make chaos` runs CHAOS_EPISODES (default 12) with 20
signals each. CHAOS_SEED changes the choices of the users.
"""

import asyncio
import os
from pathlib import Path

import pytest

from tests.chaos import invariants
from tests.chaos.campaign import Campaign, plans
from tests.chaos.campaign_checks import check_campaign
from tests.chaos.campaign_model import CampaignModel
from tests.chaos.restarting_gateway import restarting_gateway
from tests.chaos.seeds import SEED
from tests.support.openai_server import ScriptedOpenAI

EPISODES = int(os.environ.get("CHAOS_EPISODES", "12"))  # noqa: TID251 - for this test
SIGNALS = 20

Environ = dict[str, str]


async def run_episode(folder: Path, environ: Environ, seed: str, kills: int) -> None:
    """Run an episode and check the state afterwards."""
    environ = {**environ, "LARKSPUR_DISPATCH__LEASE_SECONDS": "3"}
    script = CampaignModel()
    async with (
        ScriptedOpenAI(script, record=False) as model,
        restarting_gateway(folder, model, environ, plans(kills)) as gateway,
    ):
        campaign = Campaign(gateway, script, seed=seed, kills=kills)
        try:
            async with asyncio.timeout(60 + 4 * kills):
                await campaign.run()
        except TimeoutError as error:
            error.add_note(await campaign.describe())
            raise
        await check_campaign(campaign)
    invariants.check_file(gateway.home / "larkspur.db")


@pytest.mark.slow
async def test_an_episode_with_a_few_kills(tmp_path: Path, environ: Environ) -> None:
    await run_episode(tmp_path, environ, f"{SEED} short", 4)


@pytest.mark.chaos
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", range(EPISODES))
async def test_an_episode_with_many_kills(tmp_path: Path, environ: Environ, number: int) -> None:
    await run_episode(tmp_path, environ, f"{SEED} {number}", SIGNALS)
