"""Settings of the Lark channel."""

from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, model_validator

from internal.config.chat import ChatChannelSettings
from internal.config.types import Secret, Section, Text, is_loopback, key

ORIGINS = {"feishu": "https://open.feishu.cn", "lark": "https://open.larksuite.com"}
"""The addresses of the two services, by their names."""


def _domain(text: str) -> str:
    if text in ORIGINS:
        return text
    parts = urlsplit(text)
    host = parts.hostname or ""
    safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    if not host or not safe or parts.path.rstrip("/") or parts.query or parts.fragment:
        raise ValueError(
            "must be feishu, lark, or an origin such as https://open.feishu.cn"
            " (http:// only for this machine)"
        )
    return text.rstrip("/")


Domain = Annotated[Text, AfterValidator(_domain)]


class LarkAppSettings(Section):
    """The app and the service that it belongs to."""

    enabled: bool = key(False, "true connects to Lark; requires app_id and app_secret.")
    app_id: Text | None = key(None, "The app's id, such as cli_a1b2c3.")
    app_secret: Secret | None = key(None, "The app's secret.")
    domain: Domain = key("feishu", "feishu, lark, or the origin of a Lark server.")

    @model_validator(mode="after")
    def _has_credentials(self) -> Self:
        if self.enabled and (self.app_id is None or self.app_secret is None):
            missing = "app_id" if self.app_id is None else "app_secret"
            raise ValueError(
                f"enabled is true, but {missing} is not set; copy it from the app's page in the"
                " developer console"
            )
        return self

    @property
    def origin(self) -> str:
        """The origin of REST calls and of endpoint discovery."""
        return ORIGINS.get(self.domain, self.domain)


class LarkSettings(ChatChannelSettings, LarkAppSettings):
    """The Lark (Feishu) channel."""
