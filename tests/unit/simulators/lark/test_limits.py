import pytest

from internal.simulators.lark.errors import LarkError
from internal.simulators.lark.limits import MAX_CHAT_MESSAGES_PER_SECOND, RateLimits


def test_the_window_of_a_chat_slides() -> None:
    now = 0.0
    limits = RateLimits(lambda: now)
    for _ in range(MAX_CHAT_MESSAGES_PER_SECOND):
        limits.chat("oc_1")
    limits.chat("oc_2")
    with pytest.raises(LarkError):
        limits.chat("oc_1")
    now = 1.0
    limits.chat("oc_1")


def test_nothing_is_limited_while_switched_off() -> None:
    limits = RateLimits(lambda: 0.0)
    limits.on = False
    for _ in range(100):
        limits.message("om_1")
        limits.card("card")
        limits.call("cli_1", "GET /x")
