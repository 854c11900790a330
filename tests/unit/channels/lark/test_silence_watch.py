"""The times of the watch; tests/integration/lark/test_silent_connection.py watches."""

from internal.channels.lark.silence_watch import SilenceTimes
from internal.settings.chat import ChatChannelSettings

CALLS_PER_CHECK = 3


def test_a_missed_message_is_found_before_it_is_too_old_to_be_answered() -> None:
    times = SilenceTimes()
    assert times.longest + times.retry <= 60 * ChatChannelSettings().max_age_minutes


def test_a_silent_day_costs_few_calls() -> None:
    times, checks, delay, at = SilenceTimes(), 0, SilenceTimes().first, SilenceTimes().first
    while at < 86_400:
        checks, delay = checks + 1, min(2 * delay, times.longest)
        at += delay
    assert checks * CALLS_PER_CHECK <= 110
