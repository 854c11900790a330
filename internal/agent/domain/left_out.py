"""Parts of a request to a model, or of its reply, that were left out."""

from typing import Literal

import msgspec

LeftOut = Literal[
    "pictures", "large_pictures", "tools", "tool", "results", "history", "reply_pictures"
]


class RequestLoss(msgspec.Struct, frozen=True):
    """A request was sent without `count` parts that the server does not take, or a reply lost some.

    `what` are pictures, pictures that made the body too large, all tools, the tool `name`, or parts
    that a content filter refused: results of tools, or the conversation before the run. Of a reply
    they are pictures that cannot be kept.
    """

    what: LeftOut
    count: int = 1
    name: str = ""
