"""The dependencies of the web channel."""

import dataclasses

import pytest

from internal.channels.web.services import WebServerError, WebServices


@pytest.mark.parametrize("token", ["", " ", "\n"])
async def test_a_blank_token_is_rejected(services: WebServices, token: str) -> None:
    with pytest.raises(WebServerError, match="blank"):
        dataclasses.replace(services, token=token)
