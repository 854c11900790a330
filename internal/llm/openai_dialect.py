"""How servers of one wire format differ, and how a refusal teaches which way one of them takes."""

import re
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from internal.agent.domain.errors import ModelError, ModelRejected

MOST_LESSONS = 4


class Dialect(msgspec.Struct, frozen=True):
    """What is put into a request.

    `limit` names the field of the longest reply. `counts`: tokens are asked for. `temperature`: a
    temperature may be given. `thoughts`: earlier reasoning goes back with the calls it led to.
    `effort` is sent as `reasoning_effort` with tools.
    """

    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    counts: bool = True
    temperature: bool = True
    thoughts: bool = False
    effort: str | None = None


# What a refusal says, and what to do otherwise then. The way back out of a wrong turn is here too.
_LESSONS: tuple[tuple[re.Pattern[str], dict[str, Any]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), change)
    for pattern, change in (
        (
            r"(?=.*max_completion_tokens).*(un(supported|known|recognized|expected)|not |extra)",
            {"limit": "max_tokens"},
        ),
        (r"max_completion_tokens", {"limit": "max_completion_tokens"}),
        (r"stream_options|include_usage", {"counts": False}),
        (r"temperature", {"temperature": False}),
        (r"reasoning_content", {"thoughts": True}),
        # https://developers.openai.com/api/docs/models/gpt-6-sol : tools only without reasoning
        (r"function tools with reasoning_effort.*'none'", {"effort": "none"}),
    )
)


def learned(dialect: Dialect, refusal: ModelError) -> Dialect | None:
    """Return another dialect that the refusal asks for, None when it asks for none we know."""
    if not isinstance(refusal, ModelRejected):
        return None
    said = str(refusal)
    for pattern, change in _LESSONS:
        better = replace(dialect, **change)
        if better != dialect and pattern.search(said):
            return better
    return None
