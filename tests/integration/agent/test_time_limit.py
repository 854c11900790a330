"""The time limit of a run holds for its running time, over questions and restarts."""

import time
from pathlib import Path

import pytest

from tests.support.agent_app import open_agent, sound
from tests.support.anthropic_server import Call, Reply, Rules, When

LIMIT, DELAY = 8.0, 4.5
"""Seconds. Each reply takes more than half of the limit, and leaves time to a loaded machine."""


def ask_and_wait(seconds: float) -> Rules:
    """Ask a question after some seconds, and reply so many seconds after its answer."""
    return Rules(
        [
            Reply(text="too late", delay_seconds=seconds, when=When(last_result="green")),
            Reply(calls=[Call("request_user", {"question": "which?"})], delay_seconds=seconds),
        ]
    )


@pytest.mark.slow
async def test_an_answer_does_not_start_the_time_limit_again(home: Path) -> None:
    async with open_agent(home, ask_and_wait(DELAY)) as here:
        made = await here.submit("paint", timeout_seconds=LIMIT)
        asked = await here.asked(made)
        used = (await here.run(made)).used_seconds
        assert DELAY <= used < LIMIT
        await here.answer(asked["question_id"], "text", "green")
        events = await here.end_of(made)
        sound(events)
        assert events[-1]["payload"]["stop_reason"] == "timeout"
        assert events[-1]["payload"]["error"].startswith("stopped after 8 s of running time")


@pytest.mark.slow
async def test_waiting_for_a_person_does_not_count(home: Path) -> None:
    async with open_agent(home, ask_and_wait(1.8)) as here:
        made = await here.submit("paint")
        asked = await here.asked(made)
        used = (await here.run(made)).used_seconds
        here.services.dispatcher.stop()
        await here.answer(asked["question_id"], "text", "green")
        assert (await here.run(made)).used_seconds == used


@pytest.mark.slow
async def test_a_restart_does_not_start_the_time_limit_again(home: Path) -> None:
    rules = Rules([Reply(hang=True)])
    async with open_agent(home, rules) as here:
        made = await here.submit("paint", timeout_seconds=LIMIT)
        await here.until(made.session_id, lambda each: each.get("node_id") == "iter:1")
        began = time.monotonic()
        await here.model.until_open(1)
        ran = time.monotonic() - began
    async with open_agent(home, rules) as here:
        assert (await here.run(made)).used_seconds >= ran
        events = await here.end_of(made)
        sound(events)
        assert events[-1]["payload"]["stop_reason"] == "timeout"
        assert (await here.run(made)).used_seconds >= LIMIT
