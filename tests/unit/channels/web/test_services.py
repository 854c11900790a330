"""The dependencies of the web channel."""

import msgspec
import pytest

from internal.channels.web.errors import HttpError
from internal.channels.web.services import WebServerError, WebServices


@pytest.mark.parametrize("token", ["", " ", "\n"])
async def test_a_blank_token_is_rejected(services: WebServices, token: str) -> None:
    with pytest.raises(WebServerError, match="blank"):
        msgspec.structs.replace(services, token=lambda: token)


async def test_a_token_that_became_unusable_is_never_returned(services: WebServices) -> None:
    tokens = ["t" * 32, "t" * 32, "", " ", "n" * 32]
    changing = msgspec.structs.replace(services, token=lambda: tokens.pop(0))
    assert changing.local_token() == "t" * 32
    for _ in range(2):
        with pytest.raises(HttpError) as rejected:
            changing.local_token()
        assert (rejected.value.status, rejected.value.code) == (503, "token_unusable")
    assert changing.local_token() == "n" * 32
