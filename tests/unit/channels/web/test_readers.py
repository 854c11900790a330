"""The clients that wait for answers."""

from internal.channels.web.readers import AnswerReaders


def test_clients_are_counted_by_name_while_they_wait() -> None:
    readers, left = AnswerReaders(), list[bool]()
    with (
        readers.waiting("a", lambda: bool(left)),
        readers.waiting("b", lambda: False),
        readers.waiting("a", lambda: False),
    ):
        assert [readers.count(name) for name in "abc"] == [2, 1, 0]
        left.append(True)
        assert readers.count("a") == 1
    assert [readers.count(name) for name in "ab"] == [0, 0]
