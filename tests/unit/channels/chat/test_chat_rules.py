"""Precedence of the rules of a chat: the choices of its people, its group, its channel."""

from msgspec.structs import replace

from internal.agent.domain.chats import ChatSettings
from internal.agent.domain.permissions.network import NetworkSetting, network_hosts
from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.tasks import Profile
from internal.channels.chat.chat_rules import resolve_rules
from internal.settings.chat import ChatChannelSettings, ChatGroup
from tests.support.web_app import defaults


def test_busy_mode_of_a_group_overrides_that_of_the_channel() -> None:
    settings = ChatChannelSettings(busy_mode="queue", groups={"a": ChatGroup(busy_mode="steer")})
    modes = [resolve_rules(settings, chat_id).busy_mode for chat_id in ("a", "b")]
    assert modes == ["steer", "queue"]


def test_the_profile_of_a_chat_precedes_that_of_its_group() -> None:
    configured = ChatChannelSettings(groups={"room-9": ChatGroup(profile="support")})
    assert resolve_rules(configured, "room-9").profile == "support"
    assert resolve_rules(configured, "room-9", ChatSettings(profile="x")).profile == "x"
    assert resolve_rules(configured, "room-1").profile == ""


def test_a_group_that_is_off_is_not_served_and_brings_no_context() -> None:
    groups = {"a": ChatGroup(policy="off", auto_chat_context=False)}
    rules = resolve_rules(ChatChannelSettings(groups=groups), "a")
    assert (rules.serves(is_direct=False), rules.serves(is_direct=True)) == (False, True)
    assert rules.context_size == 0
    assert not resolve_rules(ChatChannelSettings(allow_groups=False), "b").serves(is_direct=False)


def test_what_a_chat_reaches() -> None:
    base = replace(defaults(), isolated=True, policy=Policy(allow=("network(s.example)",)))
    plain, narrow = Profile(), Profile("narrow", network="off")
    wide = Profile("wide", network=("s.example", "w.example"))

    def hosts(
        profile: Profile, ceiling: NetworkSetting | None, chosen: NetworkSetting | None = None
    ) -> tuple[str, ...]:
        settings = ChatChannelSettings(network=ceiling)
        rules = resolve_rules(settings, "room-1", ChatSettings(network=chosen))
        return network_hosts(rules.policy(base, profile).allow)

    assert hosts(plain, None) == ("s.example",)
    assert hosts(plain, ("g.example",)) == ("g.example",)
    assert hosts(wide, None) == ("s.example", "w.example")
    assert hosts(wide, ("s.example",)) == ("s.example",)
    assert hosts(narrow, ("g.example",)) == ()
    assert hosts(narrow, ("g.example",), ("c.example",)) == ("c.example",)
    unable = replace(base, hosts=False, policy=Policy())
    opened = resolve_rules(
        ChatChannelSettings(network="open"), "room-1", ChatSettings(network="open")
    )
    assert opened.policy(unable, wide).allow == ()
    configured = ChatChannelSettings(
        network=("c.example",), groups={"room-9": ChatGroup(network="off")}
    )
    assert resolve_rules(configured, "room-9").network == "off"
    assert resolve_rules(configured, "room-1").network == ("c.example",)
