"""Pictures in messages, and their bytes as a request to a model contains them."""

import base64
import hashlib
from collections.abc import Iterable
from typing import Any

from internal.agent.domain.messages import Image


def an_image(content: bytes = b"heron", **fields: Any) -> Image:
    """Return a reference to a picture with this content."""
    sha256 = hashlib.sha256(content).hexdigest()
    values: dict[str, Any] = {"media_type": "image/png", "width": 30, "height": 20, **fields}
    return Image(sha256=sha256, uri=f"attachment:{sha256}", **values)


def in_base64(contents: Iterable[bytes]) -> dict[str, str]:
    """Return the images of a request with these contents."""
    return {
        hashlib.sha256(content).hexdigest(): base64.b64encode(content).decode()
        for content in contents
    }
