"""Request images: the bytes of the stored pictures that a request to a model contains."""

import base64
import logging
from collections import OrderedDict
from collections.abc import Iterable

from internal.agent.domain.errors import FilesUnavailable, NotFound, StoreError
from internal.agent.domain.messages import Image, Message, images_in
from internal.agent.ports.attachments import Attachments

MAX_REQUEST_IMAGE_CHARACTERS = 20_000_000
"""Base64 characters of the images of one request. Anthropic accepts requests of 32 MB."""

MAX_CACHED_CHARACTERS = 32_000_000

logger = logging.getLogger(__name__)


class RequestImages:
    """Reads images in base64 and caches the most recently used ones."""

    def __init__(
        self, attachments: Attachments, *, max_cached: int = MAX_CACHED_CHARACTERS
    ) -> None:
        self._attachments = attachments
        self._max_cached = max_cached
        self._cache: OrderedDict[str, str] = OrderedDict()
        self._cached = 0

    async def load(self, messages: Iterable[Message]) -> dict[str, str]:
        """Return the images of messages in base64, by SHA-256.

        Images that cannot be read are missing, and so are the oldest of more images than a request
        may contain.
        """
        loaded: dict[str, str] = {}
        left = MAX_REQUEST_IMAGE_CHARACTERS
        for image in reversed(images_in(messages)):
            if image.sha256 in loaded:
                continue
            data = await self._get(image)
            if data is None:
                continue
            left -= len(data)
            if left < 0:
                break
            loaded[image.sha256] = data
        return loaded

    async def _get(self, image: Image) -> str | None:
        data = self._cache.pop(image.sha256, None)
        if data is None:
            try:
                content = await self._attachments.get(image.sha256)
            except (NotFound, StoreError, FilesUnavailable) as error:
                fields = {"sha256": image.sha256, "error": str(error)}
                logger.warning("image cannot be read", extra=fields)
                return None
            data = base64.b64encode(content).decode()
            self._cached += len(data)
        self._cache[image.sha256] = data
        while self._cached > self._max_cached and len(self._cache) > 1:
            _, dropped = self._cache.popitem(last=False)
            self._cached -= len(dropped)
        return data
