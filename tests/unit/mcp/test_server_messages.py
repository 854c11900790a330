"""Log messages of servers."""

from internal.mcp.server_messages import MAX_MESSAGE_CHARS, MAX_MESSAGES, ServerMessages


def test_errors_belong_to_the_calls_that_run() -> None:
    messages = ServerMessages("s")
    with messages.during_call() as first, messages.during_call() as second:
        messages.note("error", "one\x1b[1m")
        messages.note("error", "one\x1b[1m")
        messages.note("warning", "two")
        messages.note("critical", {"disk": "full"})
    assert first == second == ["one\\u001b[1m", '{"disk": "full"}']


def test_errors_between_calls_are_kept_for_the_next_one_and_bounded() -> None:
    messages = ServerMessages("s")
    for number in range(MAX_MESSAGES + 1):
        messages.note("alert", f"{number}{'x' * MAX_MESSAGE_CHARS}")
    with messages.during_call() as kept:
        assert [each[0] for each in kept] == [*"01234"]
        assert {len(each) for each in kept} == {MAX_MESSAGE_CHARS}
    with messages.during_call() as later:
        assert later == []
