"""Profiles of groups and chats, as the model gets them on the wire."""

from pathlib import Path

from internal.settings.chat import ChatAccess, ChatGroup
from internal.simulators.lark.simulator import LarkSim
from tests.support.anthropic_server import Reply
from tests.support.chat_settings import with_values
from tests.support.lark_gateway import APP, QUIET, open_lark_gateway


def write_profile(home: Path, name: str, text: str) -> Path:
    path = home / "profiles" / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


async def test_two_groups_have_two_profiles(tmp_path: Path) -> None:
    write_profile(tmp_path, "support", "role: the support agent\ntools: [read_file]\nlanguage: zh")
    write_profile(tmp_path, "analyst", "role: the analyst\nmodel: claude-y\npermission_mode: deny")
    async with LarkSim([APP], speed=100.0) as sim:
        first, second = sim.groups[:2]
        groups = {
            first.chat_id: ChatGroup(profile="support"),
            second.chat_id: ChatGroup(profile="analyst"),
        }
        settings = with_values(QUIET, groups=groups, access=ChatAccess(operate=("*",)))
        script = [Reply("from support"), Reply("from the analyst"), Reply("as usual")]
        async with open_lark_gateway(tmp_path, script, settings, sim=sim) as lark:
            await sim.send_text(lark.person, first, "hello", mention_bot=True)
            assert await lark.until_replies(1, first) == ["from support"]
            await sim.send_text(lark.person, second, "/profile", mention_bot=True)
            assert "profile `analyst`" in (await lark.until_replies(1, second))[0]
            await sim.send_text(lark.person, second, "count", mention_bot=True)
            await lark.until_replies(2, second)
            await sim.send_text(lark.person, second, "/profile default", mention_bot=True)
            await sim.send_text(lark.person, second, "/profile planner", mention_bot=True)
            await sim.send_text(lark.person, second, "again", mention_bot=True)
            assert (await lark.until_replies(5, second))[-1] == "as usual"
            support, analyst, planner = lark.core.model.requests
    assert "You are the support agent." in str(support["system"])
    assert "Answer in Chinese" in str(support["system"])
    names = {tool["name"] for tool in support["tools"]}
    assert "read_file" in names
    assert "shell" not in names
    assert "You are the analyst." in str(analyst["system"])
    assert analyst["model"] == "claude-y"
    assert "You are a planner" in str(planner["system"])


async def test_a_profile_that_cannot_be_used_is_said_without_details(tmp_path: Path) -> None:
    path = write_profile(tmp_path, "support", "role: the support agent")
    settings = with_values(QUIET, profile="support", access=ChatAccess(operate=("*",)))
    async with open_lark_gateway(tmp_path, [Reply("back again")], settings) as lark:
        path.write_text("role: [wrong]")
        await lark.say("hello")
        (refusal,) = await lark.until_replies(1)
        assert "The profile of this chat cannot be used" in refusal
        assert str(tmp_path) not in refusal
        path.write_text("role: the support agent, repaired")
        await lark.say("hello again")
        assert (await lark.until_replies(2))[1] == "back again"
        assert "repaired" in str(lark.core.model.requests[0]["system"])
