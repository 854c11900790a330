"""Model families: models that may read each other's internal content."""

import re
from functools import lru_cache

# What providers append to the name of a model: dates, revisions, tags and stages.
_VERSION = re.compile(
    r"(?:@[\w-]+|:[\w.-]+"
    r"|-(?:\d{4}-\d{2}-\d{2}|\d{2}-\d{2,4}|\d{6,8}|\d{3,4}|v\d+:\d+|latest|preview|exp|beta))$"
)


@lru_cache(256)
def is_same_family(origin: str, asked: str) -> bool:
    """Return True if internal content of one model may go back to another one, unread.

    Both are `PROVIDER:MODEL`. Dates, revisions, tags and stages at the end of a name do not count.
    Nothing goes back where the origin is not known.
    """
    return bool(origin) and (origin == asked or _family(origin) == _family(asked))


def _family(origin: str) -> tuple[str, str]:
    provider, _, name = origin.partition(":")
    family = name.lower()
    while (shorter := _VERSION.sub("", family)) and shorter != family:
        family = shorter
    return provider, family
