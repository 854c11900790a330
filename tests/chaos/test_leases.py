"""A lease that ran out while its process lives."""

from functools import partial
from pathlib import Path

from tests.support.agent_app import make_recovery, open_agent, sound
from tests.support.anthropic_server import Reply


async def test_a_machine_that_slept_does_not_take_its_runs_from_itself(home: Path) -> None:
    async with open_agent(home, [Reply(text="awake again", hold="go")]) as here:
        made = await here.submit("sleep")
        await here.model.until_open(1)
        services = here.services.coordinator.services
        owner = (await here.run(made)).owner
        await services.database.write(partial(services.stores.runs.renew_leases, owner, "2000"))
        sweep = make_recovery(here.services)
        assert await sweep.recover_expired_leases({made.run_id}) == []
        here.model.release("go")
        events = await here.end_of(made)
        sound(events)
        assert events[-1]["payload"]["final_answer"] == "awake again"
        assert (await here.run(made)).fence == 1
