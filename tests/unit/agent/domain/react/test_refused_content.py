"""Content refused by a content filter is not sent again."""

from internal.agent.domain.left_out import RequestLoss
from internal.agent.domain.messages import (
    REFUSED_MESSAGE,
    Message,
    Text,
    ToolCall,
    ToolResult,
    user_message,
    without_refused,
)
from internal.agent.domain.react.context_window import REFUSED_RESULT
from internal.agent.domain.react.steps import Ask
from internal.agent.domain.react.turn import Turn
from internal.agent.domain.usage import Usage
from internal.agent.store.checkpoints import CheckpointEncoder, decode_checkpoint
from tests.support.strict_provider import check_messages
from tests.support.turn_driver import TASK, read, run_config, start_turn, stored_checkpoint

HISTORY = (user_message("hello"), Message("assistant", (Text("hi"),)))


def sent(turn: Turn) -> list[Message]:
    ask = turn.next()
    assert isinstance(ask, Ask)
    check_messages(ask.messages)
    return list(ask.messages)


def read_page(turn: Turn, call_id: str, text: str) -> None:
    turn.add_reply([read(call_id)], "m", Usage(), 0.0)
    [call] = turn.calls
    turn.add_tool_result(ToolResult(call.call_id, text))


def test_the_newest_results_go_first_then_the_history_and_the_task_never() -> None:
    turn = start_turn(run_config(), HISTORY)
    read_page(turn, "a", "fine")
    read_page(turn, "b", "forbidden")

    assert turn.leave_out_refused() == RequestLoss("results", 1)
    texts = [
        part.text for each in sent(turn) for part in each.parts if isinstance(part, ToolResult)
    ]
    assert texts == ["fine", REFUSED_RESULT]

    assert turn.leave_out_refused() == RequestLoss("history", 2)
    assert sent(turn)[0] == user_message(TASK)
    assert turn.leave_out_refused() is None


def test_a_task_without_history_is_all_that_can_be_refused() -> None:
    assert start_turn(run_config()).leave_out_refused() is None


def test_what_was_refused_stays_out_after_a_restart() -> None:
    turn = start_turn(run_config())
    read_page(turn, "a", "forbidden")
    turn.leave_out_refused()
    restored = decode_checkpoint(stored_checkpoint(CheckpointEncoder().encode(turn)))
    assert "forbidden" not in str(sent(restored))


def test_of_a_refused_run_a_note_is_left() -> None:
    run = [
        Message("user", (Text("forbidden"),), is_refused=True),
        Message("assistant", (ToolCall("a", "look", {"q": "forbidden"}),), is_refused=True),
        Message("user", (ToolResult("a", "forbidden"),), is_refused=True),
    ]
    assert [each.text for each in map(without_refused, run)] == [REFUSED_MESSAGE, "", ""]
    assert [len(without_refused(each).parts) for each in run] == [1, 0, 0]
    assert without_refused(HISTORY[0]) is HISTORY[0]
