"""The registry of chat channels."""

from internal.channels.chat.channel import ChatApp
from internal.channels.registry import CHANNEL_NAMES, CHANNELS, create_channels
from internal.settings.settings import ChannelsSettings


def test_every_channel_has_a_section_in_the_settings() -> None:
    sections = {name: field.annotation for name, field in ChannelsSettings.model_fields.items()}
    assert sections.keys() == CHANNEL_NAMES
    assert all(sections[spec.name] is spec.settings for spec in CHANNELS)


def test_a_disabled_channel_is_not_created() -> None:
    def app() -> ChatApp:
        raise AssertionError("the application of chat is made without a channel")

    assert create_channels(app, ChannelsSettings()) == ()
