"""Settings of one group override those of the channel."""

from internal.config.chat import ChatChannelSettings, ChatGroup
from internal.config.lark import LarkSettings


def test_busy_mode_of_a_group_overrides_that_of_the_channel() -> None:
    settings = ChatChannelSettings(busy_mode="queue", groups={"a": ChatGroup(busy_mode="steer")})
    assert [settings.busy_mode_in(chat_id) for chat_id in ("a", "b")] == ["steer", "queue"]


def test_unknown_group_has_no_overrides() -> None:
    assert ChatChannelSettings().group("a") == ChatGroup()


def test_keys_of_the_app_precede_those_of_every_chat_channel() -> None:
    names = list(LarkSettings.model_fields)
    app = ["enabled", "app_id", "app_secret", "domain", "proxy", "no_proxy", "ca_file"]
    assert names[:8] == [*app, "busy_mode"]
    assert set(ChatChannelSettings.model_fields) < set(names)
