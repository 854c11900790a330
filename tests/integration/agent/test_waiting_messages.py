"""Messages that no model has read: edited, taken back, delivered or given back, never two of it."""

from pathlib import Path
from typing import Any

import pytest

from internal.agent.app.runs.creation import Submitted
from internal.agent.app.waiting_messages import WaitingMessage
from internal.agent.domain.errors import Conflict, Forbidden, NotFound
from internal.agent.domain.principals import LOCAL_OWNER, Principal
from internal.agent.domain.tasks import TaskFilter
from tests.support.agent_app import Core, open_agent
from tests.support.anthropic_server import Call, Reply, Rules, When

OPEN = {"LARKSPUR_AGENT__GATES": "off"}
WORDS = "please use metric units"


def held() -> Rules:
    """Return a model whose run waits in a command until a file exists."""
    wait = Call("shell", {"command": "until [ -e go ]; do sleep 0.02; done"})
    again = Reply(text="Went on.", when=When(last_text="go on"))
    first = Reply(calls=[wait], when=When(last_user="paint"))
    return Rules([again, first, Reply(text="Done.")])


async def begin(here: Core, **options: Any) -> tuple[Submitted, Path]:
    """Start a run that is in its command, and return it with the file that ends the command."""
    made = await here.submit("paint", **options)
    await here.until(made.session_id, lambda each: each["event"] == "workflow.tool.started")
    folder = here.services.workspaces.folders.path(made.session_id)
    return made, Path(folder) / "go"


async def say(here: Core, made: Submitted, text: str = WORDS) -> WaitingMessage:
    gateway = here.services.gateway
    await gateway.steer_task(made.task_id, text, LOCAL_OWNER, channel="web")
    return (await waiting(here, made))[-1]


async def waiting(here: Core, made: Submitted) -> list[WaitingMessage]:
    return list(await here.services.gateway.waiting.list_of(made.session_id, LOCAL_OWNER))


def asked(here: Core, number: int = -1) -> str:
    return str(here.model.requests[number]["messages"])


async def test_a_message_that_waits_is_edited_taken_back_and_delivered(home: Path) -> None:
    async with open_agent(home, held(), OPEN) as here:
        made, go = await begin(here)
        words = here.services.gateway.waiting
        one, other = await say(here, made), await say(here, made, "never mind this")
        assert (one.waits_for, one.text) == ("next_step", WORDS)
        for _ in range(2):
            edited = await words.edit(made.session_id, one.number, "use feet", LOCAL_OWNER)
            assert edited.text == "use feet"
            await words.take_back(made.session_id, other.number, LOCAL_OWNER)
        assert [each.text for each in await waiting(here, made)] == ["use feet"]
        with pytest.raises(Conflict, match="given back"):
            await words.edit(made.session_id, other.number, "again", LOCAL_OWNER)
        with pytest.raises(NotFound):
            await words.take_back(made.session_id, 999, LOCAL_OWNER)
        go.touch()
        await here.end_of(made)
        assert "use feet" in asked(here)
        assert not any(text in asked(here) for text in (WORDS, "never mind this"))
        assert await waiting(here, made) == []
        with pytest.raises(Conflict, match="read this message already"):
            await words.take_back(made.session_id, one.number, LOCAL_OWNER)
        with pytest.raises(Conflict, match="read this message already"):
            await words.edit(made.session_id, one.number, "too late", LOCAL_OWNER)


@pytest.mark.parametrize("ending", ["stop", pytest.param("limit", marks=pytest.mark.slow)])
async def test_a_stopped_run_gives_back_once_what_it_did_not_read(home: Path, ending: str) -> None:
    async with open_agent(home, held(), OPEN) as here:
        made, _ = await begin(here, **({"timeout_seconds": 3.0} if ending == "limit" else {}))
        word = await say(here, made)
        if ending == "stop":
            await here.services.gateway.stop(made.task_id, LOCAL_OWNER, "web")
        events = await here.end_of(made)
        [back] = [each for each in events if each["payload"].get("state") == "given_back"]
        assert back["payload"]["number"] == word.number
        [kept] = await waiting(here, made)
        assert (kept.waits_for, kept.text, kept.number) == ("given_back", WORDS, word.number)
        tasks = await here.services.gateway.queries.task_list(LOCAL_OWNER, TaskFilter())
        assert len(tasks) == 1
        await here.end_of(await here.submit("go on", made.session_id))
        assert WORDS not in asked(here)
        assert [each.number for each in await waiting(here, made)] == [word.number]
        for _ in range(2):
            await here.services.gateway.waiting.take_back(made.session_id, word.number, LOCAL_OWNER)
        assert await waiting(here, made) == []


async def test_a_queued_task_is_edited_and_taken_back_until_it_begins(home: Path) -> None:
    async with open_agent(home, held(), OPEN) as here:
        made, go = await begin(here)
        first = await here.submit("then draw", made.session_id)
        second = await here.submit("then sing", made.session_id)
        words = here.services.gateway.waiting
        one, two = await waiting(here, made)
        assert (one.waits_for, two.waits_for) == ("next_task", "next_task")
        await words.edit(made.session_id, one.number, "then sculpt", LOCAL_OWNER)
        stranger = Principal("lark:x", "Ann", frozenset({"talk"}))
        with pytest.raises((Forbidden, NotFound)):
            await words.take_back(made.session_id, two.number, stranger)
        for _ in range(2):
            await words.take_back(made.session_id, two.number, LOCAL_OWNER)
        go.touch()
        await here.end_of(first)
        assert "then sculpt" in asked(here)
        assert "then draw" not in asked(here)
        assert (await here.run(second)).status == "cancelled"
        with pytest.raises(Conflict, match="read this message already"):
            await words.take_back(made.session_id, one.number, LOCAL_OWNER)
