"""The chat channels. A new one is a package and one line here."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from internal.settings.lark import LarkSettings
from internal.settings.types import Section

if TYPE_CHECKING:
    from internal.channels.chat.channel import ChatApp, ChatChannel


class ChannelSpec(msgspec.Struct, frozen=True):
    """A chat channel: its section in `channels.<name>`, and its factory.

    `create` returns None if the settings do not enable the channel. Only otherwise it calls the
    function that returns the application, so that chat is not imported where it is not used.
    """

    name: str
    settings: type[Section]
    create: "Callable[[Callable[[], ChatApp], Any], ChatChannel | None]"


def _create_lark(app: "Callable[[], ChatApp]", settings: LarkSettings) -> "ChatChannel | None":
    if not settings.enabled:
        return None
    from internal.channels.lark.channel import (  # noqa: PLC0415 - of no use without Lark
        create_lark_channel,
    )

    return create_lark_channel(app(), settings)


CHANNELS = (ChannelSpec("lark", LarkSettings, _create_lark),)
CHANNEL_NAMES = frozenset({"cli", "web", *(spec.name for spec in CHANNELS)})
"""The channels with settings: all values of `Channel` but `mcp`, the one of MCP clients."""


def create_channels(app: "Callable[[], ChatApp]", sections: Any) -> "tuple[ChatChannel, ...]":
    """Return the enabled channels; `sections` has the settings of each under its name."""
    created = [spec.create(app, getattr(sections, spec.name)) for spec in CHANNELS]
    return tuple(channel for channel in created if channel is not None)
