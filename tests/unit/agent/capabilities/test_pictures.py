"""Pictures of a request: exactly the pictures named by its messages."""

from pathlib import Path
from typing import Any

from internal.agent.app.files.request_images import RequestImages
from internal.agent.capabilities.pictures import PicturesCapability
from internal.agent.domain.messages import Message, user_message
from internal.agent.domain.react.request_messages import RequestMessages
from internal.agent.ports.llm import ModelRequest
from internal.attachments.local import LocalAttachments
from tests.support.images import an_image, in_base64
from tests.support.weighed_messages import weighed

UNUSED: Any = None


async def test_a_request_gets_the_pictures_of_its_messages(tmp_path: Path) -> None:
    attachments = LocalAttachments(tmp_path / "attachments")
    await attachments.put("a.png", "image/png", b"sent")
    pictures = PicturesCapability(RequestImages(attachments), UNUSED)

    async def images_of(message: Message) -> Any:
        request = ModelRequest("claude-x", "", RequestMessages(weighed([message])))
        return (await pictures.before_request(UNUSED, UNUSED, request)).images

    assert await images_of(user_message("hi", [an_image(b"sent")])) == in_base64([b"sent"])
    assert await images_of(user_message("hi")) == {}
