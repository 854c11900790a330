"""The registry of chat channels."""

from internal.channels.chat.channel import ChatApp
from internal.channels.registry import CHANNEL_NAMES, CHANNELS, create_channels
from internal.config.settings import ChannelsSettings
from internal.observability.clock import SystemClock
from tests.support.chat_texts import EN_TEXTS
from tests.support.web_app import defaults


def test_every_channel_has_a_section_in_the_settings() -> None:
    sections = {name: field.annotation for name, field in ChannelsSettings.model_fields.items()}
    assert sections.keys() == CHANNEL_NAMES
    assert all(sections[spec.name] is spec.settings for spec in CHANNELS)


def test_a_disabled_channel_is_not_created() -> None:
    app = ChatApp(None, defaults(), SystemClock(), EN_TEXTS, None, None, None, None)  # type: ignore[arg-type]  # not used
    assert create_channels(app, ChannelsSettings()) == ()
