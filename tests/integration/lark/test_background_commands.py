"""`/ps` and `/stop bg-…` in a chat: its background commands, and nobody else's."""

import re
from pathlib import Path

import pytest

from tests.support.lark_gateway import open_lark_gateway
from tests.support.scripted_model import Call, Reply

ISOLATED = {"LARKSPUR_AGENT__GATES": "off", "LARKSPUR_SANDBOX__PROVIDER": "bubblewrap"}
SERVES = Call("shell", {"command": "exec sleep 600", "background": True, "keep": True})


@pytest.mark.needs("namespaces")
@pytest.mark.slow
async def test_background_commands_are_listed_and_stopped_in_their_chat(tmp_path: Path) -> None:
    script = [Reply(calls=[SERVES]), Reply("It serves.")]
    async with open_lark_gateway(tmp_path, script, environ=ISOLATED) as lark:
        await lark.say("/ps")
        assert await lark.until_replies(1) == ["No background commands."]
        await lark.say("/status")
        status = (await lark.until_replies(2))[-1]
        assert "Commands run isolated, without network." in status
        await lark.say("serve it")
        await lark.until_replies(3)
        await lark.say("/ps")
        listed = (await lark.until_replies(4))[-1]
        assert "running" in listed
        assert "exec sleep 600" in listed
        (found,) = re.findall(r"bg-\w+", listed)

        other, group = lark.sim.people[1], lark.group
        await lark.sim.send_text(other, group, f"/stop {found}", mention_bot=True)
        await lark.until_replies(1, group)
        assert found not in "".join(lark.replies(group))

        await lark.say(f"/stop {found}")
        assert (await lark.until_replies(5))[-1] == f"`{found}` has ended."
        await lark.say("/ps")
        assert "running" not in (await lark.until_replies(6))[-1]
