"""Runs whose checkpoint cannot be read: each fails alone, with its reason and its history."""

import asyncio
import re
from pathlib import Path

import pytest

from internal.agent.app.background_task import background_task
from internal.agent.app.runs.creation import Submission, Submitted
from internal.agent.app.task_options import TaskOptions, build_run_spec
from internal.agent.domain.messages import Message, user_message
from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.store.checkpoints import CHECKPOINT_VERSION
from internal.config.loader import load
from internal.settings.chat import ChatAccess, ChatChannelSettings
from larkspur.services import TerminalServices, open_terminal
from tests.support.agent_app import Core, open_agent, plain_gateway, plan, sound
from tests.support.anthropic_server import Reply, Rules, When
from tests.support.chat_services import EchoChat, open_channel
from tests.support.database_files import execute

NEWER = (
    "The checkpoint of the run was written by a newer Larkspur (checkpoint version"
    f" {CHECKPOINT_VERSION + 1}, this one reads up to {CHECKPOINT_VERSION})."
)
QUIET = ChatChannelSettings(react_emoji="off", progress="off", access=ChatAccess(operate=("*",)))
CANNOT_BE_READ = "The checkpoint of the run cannot be read: "
DAMAGES = {
    "a cut Turn": (
        "update checkpoints set turn = substr(turn, 1, 40) where run_id = '{}'",
        CANNOT_BE_READ,
        3,
    ),
    "a Turn of another type": (
        "update checkpoints set turn = '[]' where run_id = '{}'",
        CANNOT_BE_READ,
        3,
    ),
    "a cut message": (
        "update turn_log set message = '{{' where number = 2 and run_id = '{}'",
        CANNOT_BE_READ,
        1,
    ),
    "no configuration": (
        "update turn_log set message = '{{}}' where number = 0 and run_id = '{}'",
        CANNOT_BE_READ,
        3,
    ),
    "a newer version": (
        "update checkpoints set version = 1 + version where run_id = '{}'",
        NEWER,
        3,
    ),
}
"""By name: the SQL, the start of the reason, and how many of three messages are kept."""

PLANNER = Rules([Reply(hang=True, when=When(all_results=1)), Reply(calls=[plan()])])
"""A model that makes a plan and then does not answer: the checkpoint has three messages."""

FINISHER = Rules([Reply(text="done", when=When(last_user="intact")), Reply(text="I see")])


async def until_planned(here: Core, made: Submitted) -> None:
    """Return when the checkpoint with the plan is stored."""
    await here.until(made.session_id, lambda each: each["event"] == "workflow.plan.updated")


async def history(here: Core, made: Submitted) -> list[Message]:
    """Return the messages of a session, oldest first."""
    listed = await here.services.gateway.queries.messages(made.session_id, LOCAL_OWNER)
    return [row.message for row in reversed(listed)]


async def check_failed(here: Core, made: Submitted, damage: str) -> None:
    """Check how a run with an unreadable checkpoint ended."""
    _, reason, kept = DAMAGES[damage]
    events = await here.end_of(made)
    sound(events)
    end = events[-1]["payload"]
    assert re.match(re.escape(reason), end["error"])
    assert end["error_code"] == "checkpoint_unreadable"
    run = await here.run(made)
    assert (run.status, run.error) == ("failed", end["error"])
    assert len(await history(here, made)) == kept
    following = await here.services.gateway.resume(made.task_id, LOCAL_OWNER, "web")
    events = await here.end_of(following)
    assert events[-1]["payload"]["final_answer"] == "I see"
    request = here.model.requests[-1]
    assert request["tools"], "the run begins anew, with the history of the session"
    assert len(request["messages"]) >= kept


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.first_rows(1)
async def test_a_gateway_fails_an_unreadable_run_and_continues_the_others(
    home: Path, damage: str
) -> None:
    async with open_agent(home, PLANNER) as here:
        damaged, intact = await here.submit("damaged"), await here.submit("intact")
        await until_planned(here, damaged)
        await until_planned(here, intact)
    execute(home / "larkspur.db", DAMAGES[damage][0].format(damaged.run_id))

    async with open_agent(home, FINISHER) as here:
        await check_failed(here, damaged, damage)
        assert (await here.end_of(intact))[-1]["payload"]["final_answer"] == "done"


async def test_a_run_whose_stored_bytes_are_no_text_fails_without_its_messages(home: Path) -> None:
    async with open_agent(home, PLANNER) as here:
        made = await here.submit("damaged")
        await until_planned(here, made)
    execute(home / "larkspur.db", "update turn_log set message = cast(x'ff00' as text)")

    async with open_agent(home, FINISHER) as here:
        events = await here.end_of(made)
        sound(events)
        assert "Could not decode to UTF-8" in events[-1]["payload"]["error"]
        assert await history(here, made) == [user_message("damaged")]


async def test_damaged_columns_of_a_run_affect_no_other_run(home: Path) -> None:
    async with open_agent(home, PLANNER) as here:
        stopped, damaged = await here.submit("stopped"), await here.submit("intact and damaged")
        await until_planned(here, stopped)
        await until_planned(here, damaged)
    file = home / "larkspur.db"
    damage = "update runs set {} = 'x' where id = '{}'"
    execute(file, damage.format("stop_request", stopped.run_id))
    execute(file, damage.format("usage", damaged.run_id))

    async with open_agent(home, FINISHER) as here:
        assert (await here.end_of(damaged))[-1]["payload"]["final_answer"] == "done"
        assert (await here.end_of(stopped))[-1]["event"] == "workflow.result.cancelled"
        assert (await here.end_of(await here.submit("intact")))[-1]["payload"]["final_answer"]


async def test_the_person_in_the_chat_is_told(home: Path) -> None:
    service = EchoChat()
    async with open_agent(home, PLANNER) as here, open_channel(service, here, QUIET):
        asked = await service.say("damaged")
        await here.model.until_asked(2)
    execute(home / "larkspur.db", "update checkpoints set turn = '{'")

    async with open_agent(home, FINISHER) as here, open_channel(service, here, QUIET):
        await service.until(lambda: bool(service.replies()))
        [(text, replied_to)] = service.replies()
        assert "its saved state can't be read" in text
        assert replied_to == asked


async def submit_in_terminal(terminal: TerminalServices, text: str) -> Submitted:
    options = TaskOptions(permission_mode=Mode.ALL)
    spec = build_run_spec(terminal.defaults, options, LOCAL_OWNER)
    owner, lease = terminal.leases.owner, terminal.leases.expiry()
    submission = Submission(text, spec, "cli", owner=owner, lease_until=lease)
    return await plain_gateway(terminal).submit(submission, LOCAL_OWNER)


async def die_in_terminal(here: Core, home: Path, texts: list[str]) -> list[Submitted]:
    """Leave runs of a terminal as a killed process leaves them, with checkpoints."""
    environ = {
        "LARKSPUR_HOME": str(home),
        "ANTHROPIC_BASE_URL": here.model.base_url,
        "ANTHROPIC_API_KEY": "key-for-tests",
        "LARKSPUR_LLM__PROVIDER": "anthropic",
        "LARKSPUR_LLM__MODEL": "claude-x",
    }
    async with open_terminal(load(environ=environ)) as terminal:
        left = [await submit_in_terminal(terminal, text) for text in texts]
        for made in left:
            execution = terminal.dispatcher.execute(made.run_id, terminal.coordinator)
            async with background_task(execution):
                await until_planned(here, made)
    execute(home / "larkspur.db", "update runs set owner = 'terminal-gone', lease_until = '2026'")
    return left


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.first_rows(1)
async def test_a_gateway_starts_and_sweeps_with_an_unreadable_run_of_a_terminal(
    home: Path, damage: str
) -> None:
    async with open_agent(home, PLANNER) as here:
        here.services.dispatcher.stop()  # its sweep must not be quicker
        damaged, intact = await die_in_terminal(here, home, ["damaged", "intact"])
    execute(home / "larkspur.db", DAMAGES[damage][0].format(damaged.run_id))

    async with open_agent(home, FINISHER) as here:
        await check_failed(here, damaged, damage)
        end = (await here.end_of(intact))[-1]["payload"]
        assert (end["stop_reason"], len(await history(here, intact))) == ("interrupted", 3)
        assert (await here.end_of(await here.submit("intact")))[-1]["payload"]["stop_reason"]


REFUSALS = {
    "usage": (
        "create trigger t before insert on usage"
        " when new.run_id = (select id from runs order by arrival limit 1)"
        " begin select raise(abort, 'no'); end"
    ),
    "a message": (
        "create trigger t before insert on messages when new.message like '%forty-two%'"
        " begin select raise(abort, 'no'); end"
    ),
    "an event": (
        "create trigger t before insert on events when new.payload like '%forty-two%'"
        " begin select raise(abort, 'no'); end"
    ),
    "a duplicate number": (
        "create trigger t before insert on events when new.payload like '%forty-two%'"
        " begin insert into events select * from events limit 1; end"
    ),
}
"""Triggers by which the database refuses writes at the end of a run."""


@pytest.mark.parametrize("what", REFUSALS)
@pytest.mark.first_rows(1)
async def test_a_run_whose_events_cannot_be_stored_fails_and_frees_its_lane(
    home: Path, what: str
) -> None:
    script = Rules([Reply(text="free", when=When(last_user="next")), Reply(text="forty-two")])
    async with open_agent(home, script) as here:
        execute(home / "larkspur.db", REFUSALS[what])
        broken = await here.submit("count")
        queued = await here.submit("next", broken.session_id)
        async with asyncio.timeout(30):
            await here.end_of(broken)
        events = await here.durable(broken)
        sound(events)
        assert "cannot be stored" in events[-1]["payload"]["error"]
        assert (await here.run(broken)).status == "failed"
        execute(home / "larkspur.db", "drop trigger t")
        assert (await here.end_of(queued))[-1]["payload"]["final_answer"] == "free"
