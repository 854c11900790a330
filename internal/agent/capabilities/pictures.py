"""Pictures in requests to the model and in its replies."""

import msgspec

from internal.agent.app.files.artifacts import ArtifactRecorder
from internal.agent.app.files.request_images import RequestImages
from internal.agent.app.runs.context import RunContext
from internal.agent.capabilities.capability import Capability, ModelReply
from internal.agent.domain.left_out import RequestLoss
from internal.agent.domain.messages import Text
from internal.agent.domain.react.request_messages import RequestMessages
from internal.agent.domain.react.turn import Turn
from internal.agent.ports.llm import ModelRequest, ModelResponse


class PicturesCapability(Capability):
    """Adds the pictures that messages name to requests, and keeps the pictures of replies."""

    name = "pictures"

    def __init__(self, images: RequestImages, artifacts: ArtifactRecorder) -> None:
        self._images, self._artifacts = images, artifacts

    async def before_request(
        self, _run: RunContext, _turn: Turn, request: ModelRequest, /
    ) -> ModelRequest:
        """Load the pictures; unreadable ones are left out."""
        messages = request.messages
        if isinstance(messages, RequestMessages):
            messages = messages.with_images()
        if not messages:
            return request
        return msgspec.structs.replace(request, images=await self._images.load(messages))

    async def after_reply(self, run: RunContext, response: ModelResponse, /) -> ModelReply:
        """Make the pictures of a reply artifacts of the run."""
        if not response.pictures:
            return ModelReply(response)
        kept = await self._artifacts.record_pictures(run, response.pictures)
        lost: tuple[RequestLoss, ...] = ()
        if kept.note:
            refused = len(response.pictures) - sum(len(each.artifacts) for each in kept.events)
            lost = (RequestLoss("reply_pictures", refused),)
            parts = (*response.parts, Text(f"\n\n{kept.note}"))
            response = msgspec.structs.replace(response, parts=parts)
        return ModelReply(response, kept.events, kept.also, lost)
