"""The clients that wait for answers."""

from internal.channels.web.readers import AnswerReaders


def test_clients_are_counted_by_name_while_they_wait() -> None:
    readers = AnswerReaders()
    with readers.waiting("a"), readers.waiting("b"), readers.waiting("a"):
        assert [readers.count(name) for name in "abc"] == [2, 1, 0]
    assert [readers.count(name) for name in "ab"] == [0, 0]
