"""A stop ends a command with all its child processes, also detached ones."""

import asyncio
import secrets
from pathlib import Path

import pytest

from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import Channel
from tests.support.agent_app import open_agent, plan
from tests.support.anthropic_server import Call, Reply

TREES = {
    "grandchildren": "sleep {} & (setsid sleep {} &) ; echo ready; sleep {}",
    "great-grandchildren": "(sh -c '(sh -c \"setsid sleep {} & sleep {}\" &) ; sleep {}' &) ;"
    " echo ready; sleep {}",
    "those that do not listen": "trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM HUP INT;"
    " while :; do sleep {}; done' &) ; echo ready; while :; do sleep {}; done",
    "a daemon": "(setsid sh -c 'exec < /dev/null > /dev/null 2>&1; sleep {} & sleep {}' &) ;"
    " echo ready; sleep {}",
}
OTHER_CHANNELS: list[tuple[str, Channel]] = [("grandchildren", "lark"), ("grandchildren", "cli")]


def living(marker: str) -> list[str]:
    """Return the command lines of the processes that carry the marker and are not dead."""
    found: list[str] = []
    for process in Path("/proc").iterdir():
        try:
            line = (
                (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            )
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue  # no process, or gone meanwhile
        if marker in line and state not in {"Z", "X"}:
            found.append(line)
    return found


@pytest.mark.parametrize(("name", "channel"), [(name, "web") for name in TREES] + OTHER_CHANNELS)
@pytest.mark.first_rows(2)
async def test_a_stop_ends_the_run_within_two_seconds(
    home: Path, name: str, channel: Channel
) -> None:
    tree = TREES[name]
    marker = str(secrets.randbelow(10**9) + 10**9)  # seconds to sleep, and a name for /proc
    command = f"touch kept; sh -c {quoted(tree.replace('{}', marker))}"
    async with open_agent(
        home, [Reply(calls=[plan()]), Reply(calls=[Call("shell", {"command": command})])]
    ) as here:
        made = await here.submit("sleep")
        await here.until(made.session_id, lambda each: "ready" in str(each["payload"].get("text")))
        assert len(living(marker)) >= 2
        async with asyncio.timeout(2.0):
            await here.services.gateway.stop(made.task_id, LOCAL_OWNER, channel)
            events = await here.end_of(made)
        assert living(marker) == []
        assert events[-1]["event"] == "workflow.result.cancelled"
        run = await here.run(made)
        assert (run.status, run.stop_reason) == ("cancelled", "user_stop")
        assert (home / "workspaces" / made.session_id / "kept").exists()


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
