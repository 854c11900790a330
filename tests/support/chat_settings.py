"""Settings of a chat channel that differ from others."""

from typing import Any

from internal.settings.chat import ChatChannelSettings


def with_values(settings: ChatChannelSettings, **values: Any) -> ChatChannelSettings:
    """Return a copy with other values, checked."""
    return ChatChannelSettings.model_validate({**dict(settings), **values})
