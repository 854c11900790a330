"""The emoji of Lark that rate an answer. Pure."""

from internal.agent.domain.tasks import Rating

# Only emoji that say nothing else: OK, DONE and the check marks also mean "read" or "go on".
_UP = (
    *("THUMBSUP", "JIAYI", "LGTM", "APPLAUSE", "CLAP", "PRAISE", "HEART", "LOVE", "FINGERHEART"),
    *("THANKS", "MUSCLE", "FISTBUMP", "HIGHFIVE", "YouAreTheBest", "AWESOMEN", "Hundred"),
    *("Trophy", "SALUTE"),
)
_DOWN = ("ThumbsDown", "MinusOne")
_RATINGS: dict[str, Rating] = {
    **{each.lower(): "up" for each in _UP},
    **{each.lower(): "down" for each in _DOWN},
}


def rating_of(emoji: str) -> Rating | None:
    """Return the rating that an emoji type stands for, or None."""
    return _RATINGS.get(emoji.lower())
