"""The reply of a run for every way in which it can end."""

from typing import get_args

import pytest

from internal.agent.domain.chats import OutgoingMessage
from internal.agent.domain.tasks import StopReason
from internal.channels.chat.outbox_sender import format_result
from internal.i18n.chat import ChatPhrases

EN, ZH = ChatPhrases("en"), ChatPhrases("zh")


@pytest.mark.parametrize("reason", get_args(StopReason))
@pytest.mark.parametrize("said", [EN, ZH], ids=["en", "zh"])
def test_every_stop_reason_has_a_reply_without_raw_errors(
    reason: StopReason, said: ChatPhrases
) -> None:
    for body in ("", "an answer"):
        outgoing = OutgoingMessage("k", "lark", "a", "c", "m", body, "run-1", reason, "RAW ERROR")
        text = format_result(outgoing, said, "model_busy")
        assert text
        assert body in text
        assert "RAW" not in text
        assert "run-1" not in text


def test_a_reply_says_how_to_continue_where_that_may_help() -> None:
    assert EN.ended("error", "model_busy").endswith("Send /resume to continue.")
    assert ZH.ended("timeout").endswith("发送 /继续 可接着执行。")
    assert "/resume" not in EN.ended("error", "model_refused")
    assert EN.ended("error", "never_heard_of") == EN.ended("error")
