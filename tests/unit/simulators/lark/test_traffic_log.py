from internal.simulators.lark.clock import SimClock
from internal.simulators.lark.traffic_log import MAX_LOGGED_CHARACTERS, TrafficLog, redact


def test_secrets_never_reach_the_log() -> None:
    log = TrafficLog(SimClock(), lambda: None)
    log.add("call", "", "GET /ws?ticket=abc&x=1", sent=b'{"app_secret": "hunter2"}')
    entry = log.entries[-1]
    assert "abc" not in entry.what
    assert "hunter2" not in entry.sent
    assert "x=1" in redact("ticket=abc&x=1")


def test_long_texts_are_truncated_and_entries_numbered() -> None:
    changes: list[int] = []
    log = TrafficLog(SimClock(), lambda: changes.append(1))
    log.add("note", "", "one", got="x" * (MAX_LOGGED_CHARACTERS + 5))
    log.add("note", "", "two")
    assert len(log.entries[0].got) < MAX_LOGGED_CHARACTERS + 30
    assert [entry.what for entry in log.after(1)] == ["two"]
    assert log.entries[0].public()["number"] == 1
    assert len(changes) == 2
