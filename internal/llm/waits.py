"""Waits that a server asks for, in every form in which servers state them."""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

MAX_WAIT_SECONDS = 400 * 86_400.0
"""A longer wait is a mistake of the server, such as a date in another unit."""
_EPOCH_SECONDS, _EPOCH_MILLISECONDS = 1e9, 1e12
"""From here on a number is an instant, not a length of time."""
_UNITS = {
    "ms": 0.001,
    "s": 1.0,
    "m": 60.0,
    "h": 3_600.0,
    "d": 86_400.0,
}
_LENGTH = r"(?:\d+(?:\.\d+)?(?:ms|[smhd]))+"
_PIECE = r"(\d+(?:\.\d+)?)(ms|[smhd])"
# The names of units in words, by their first letters in English, or in Chinese.
_WORDS = (
    r"(?i)(?:try again|retry|wait|available again)(?:,| again| request| your request)*"
    r"(?: (?:in|after|for|at least|about))+ (?P<length>" + _LENGTH + r"\b)"
    r"|(?:try again|retry|wait)(?: (?:in|after|for|at least|about))* "
    r"(?P<count>\d+(?:\.\d+)?) ?(?P<unit>millisecond|second|sec|minute|min|hour)s?\b"
    r"|(?P<zh_count>\d+(?:\.\d+)?) ?(?P<zh_unit>毫秒|秒钟?|分钟?|个?小时)(?:之?后|再)"
)
_WORD_UNITS = {"millisecond": "ms", "second": "s", "sec": "s", "minute": "m", "min": "m"}
_WORD_UNITS |= {"hour": "h", "毫秒": "ms", "秒": "s", "秒钟": "s", "分": "m", "分钟": "m"}
_WORD_UNITS |= {"小时": "h", "个小时": "h"}


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds of the wait in the headers of a response, None if they state none.

    `retry-after-ms` and `retry-after` come first. Of the limits in `…ratelimit-reset…` headers,
    only exhausted ones count.
    """
    now = now or datetime.now(UTC)
    milliseconds = headers.get("retry-after-ms", "")
    if (wait := _checked(_number(milliseconds) / 1_000)) is not None:
        return wait
    if (wait := parse_wait(headers.get("retry-after", ""), now)) is not None:
        return wait
    resets = [parse_wait(text, now) for text in _used_up(headers)]
    return max((wait for wait in resets if wait is not None), default=None)


def wait_in_words(message: str) -> float | None:
    """Return the seconds that a sentence asks to wait, such as "Please try again in 1m30s"."""
    found = re.search(_WORDS, message)
    if found is None:
        return None
    if found["length"]:
        return _checked(_length(found["length"]))
    unit = _WORD_UNITS[(found["unit"] or found["zh_unit"]).lower()]
    return _checked(float(found["count"] or found["zh_count"]) * _UNITS[unit])


def parse_wait(text: str, now: datetime) -> float | None:
    """Return the seconds of a wait that is stated as a length, an instant, or a date."""
    text = text.strip()
    number = _number(text)
    if not math.isnan(number):
        if number >= _EPOCH_MILLISECONDS:
            number = number / 1_000 - now.timestamp()
        elif number >= _EPOCH_SECONDS:
            number -= now.timestamp()
        return _checked(number)
    if re.fullmatch(_LENGTH, text):
        return _checked(_length(text))
    date = _date(text)
    return None if date is None else _checked((date - now).total_seconds())


def _used_up(headers: Mapping[str, str]) -> Iterator[str]:
    """Yield the resets of the exhausted limits."""
    for name, value in headers.items():
        if "ratelimit" not in name.lower() or "reset" not in name.lower():
            continue
        remaining = headers.get(name.lower().replace("reset", "remaining"))
        if remaining is not None and _number(remaining) <= 0:
            yield value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _length(text: str) -> float:
    return sum(float(count) * _UNITS[unit] for count, unit in re.findall(_PIECE, text))


def _date(text: str) -> datetime | None:
    """Return a date of HTTP (three forms) or RFC 3339. One without a zone is in UTC."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415  # needed at refusals only

    for parse in (datetime.fromisoformat, parsedate_to_datetime, _asctime):
        try:
            date = parse(text)
        except (TypeError, ValueError):
            continue
        return date if date.tzinfo else date.replace(tzinfo=UTC)
    return None


def _asctime(text: str) -> datetime:
    return datetime.strptime(text, "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)


def _checked(seconds: float) -> float | None:
    return seconds if 0 <= seconds <= MAX_WAIT_SECONDS else None
