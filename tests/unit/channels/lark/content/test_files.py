"""The URIs of files in messages."""

import pytest

from internal.agent.domain.errors import RemoteFileUnavailable
from internal.channels.lark.api import LarkClient
from internal.channels.lark.connection import AppCredentials
from internal.channels.lark.content.files import LarkFile, as_attachments, open_file
from internal.observability.clock import SystemClock


def test_a_file_is_an_attachment_that_is_still_to_be_fetched() -> None:
    files = (LarkFile("img_v3/..", "image", "picture"), LarkFile("k", "file", "a.pdf"))
    picture, document = as_attachments(files, "cli_1", "om_1")
    assert picture.uri == "lark:cli_1/om_1/img_v3%2F..?type=image"
    assert document.uri == "lark:cli_1/om_1/k?type=file"
    assert (document.name, document.media_type) == ("a.pdf", "application/pdf")
    assert not picture.is_stored


@pytest.mark.parametrize(
    "uri",
    ["", "lark:", "lark:a/b", "lark:a/b/c?type=movie", "lark:a/b/c/d?type=file", "file:///etc/x"],
)
async def test_other_uris_are_not_requested(uri: str) -> None:
    client = LarkClient(AppCredentials("cli_1", "secret", "http://127.0.0.1:1"), SystemClock())
    with pytest.raises(RemoteFileUnavailable, match="address"):
        async with open_file(client, uri):
            pass
