"""Commands that use up a resource: each ends with a sentence, and the gateway answers meanwhile."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_app import open_agent
from tests.support.anthropic_server import seen_in
from tests.support.scripted_model import Call, Reply
from tests.support.working_web_app import open_working_web_app

ISOLATED = {"LARKSPUR_AGENT__GATES": "off", "LARKSPUR_SANDBOX__PROVIDER": "bubblewrap"}

# the memory is never written to, so that the test needs no 4 GB
MEMORY_EATER = """exec /usr/bin/python3 -c '
import mmap, time
held = []
while True:
    held.append(mmap.mmap(-1, 100_000_000, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    time.sleep(0.01)
'"""

COMMANDS = {
    "bomb() { bomb | bomb & }; bomb; sleep 600": "[ended after 5 s with all it had started]",
    "yes | head -c 10000000000": "[ended: the command wrote more output than it may]\n[exit code",
    "head -c 10000000000 /dev/zero >/tmp/full": "No space left on device\n[exit code 1]",
    MEMORY_EATER: "Cannot allocate memory\n[exit code 1]",
}
"""Commands, and the ends of their results."""


@pytest.mark.needs("namespaces")
@pytest.mark.slow
async def test_a_command_that_uses_up_a_resource_ends_and_the_gateway_answers_meanwhile(
    home: Path,
) -> None:
    seconds = [5, 60, 60, 60]
    calls = [
        Call("shell", {"command": command, "timeout_seconds": timeout})
        for command, timeout in zip(COMMANDS, seconds, strict=True)
    ]
    script = [*(Reply(calls=[call]) for call in calls), Reply(text="done")]
    answered = []
    async with open_working_web_app(home, script, ISOLATED) as app:
        made = await app.task()
        for number in range(len(COMMANDS)):
            await app.core.until(made.session_id, starts_call(number))
            assert (await app.client.get("/health")).status == 200
            answered.append(app.core.services.clock.now())
        events = await app.end_of(made)
    ended = [each for each in events if each["event"] == "workflow.tool.completed"]
    for end, says, answer in zip(ended, COMMANDS.values(), answered, strict=True):
        assert says in end["payload"]["result"][-len(says) - 6 :]
        assert answer < datetime.fromisoformat(end["timestamp"])
    assert "fork: retry: Resource temporarily unavailable" in ended[0]["payload"]["result"]
    assert events[-1]["event"] == "workflow.result.final"


def starts_call(number: int) -> Any:
    """Return a condition that is true of the start of the call with this number, from 0."""
    started = []

    def is_start(envelope: dict[str, Any]) -> bool:
        if envelope["event"] == "workflow.tool.started":
            started.append(envelope)
        return len(started) > number

    return is_start


@pytest.mark.needs("namespaces")
async def test_a_session_that_takes_too_much_disk_space_is_told(home: Path) -> None:
    commands = ("head -c 3000000 /dev/zero > big", "(echo more > more); rm big", "echo more > more")
    calls = [Reply(calls=[Call("shell", {"command": command})]) for command in commands]
    environ = {**ISOLATED, "LARKSPUR_SANDBOX__SESSION_DISK_MB": "2"}
    async with open_agent(home, [*calls, Reply(text="done")], environ) as here:
        made = await here.submit("go")
        await here.end_of(made)
        said = [seen_in(request).last_result or "" for request in here.model.requests[1:]]
        folder = home / "workspaces" / made.session_id
        assert (folder / "more").read_text() == "more\n"
    assert ["disk space" in each for each in said] == [False, True, False]
