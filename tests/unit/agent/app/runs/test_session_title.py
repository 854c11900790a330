"""Session titles."""

from internal.agent.app.runs.session_title import one_line


def test_titles_are_one_short_line() -> None:
    assert one_line("\n  write   the report\nwith charts") == "write the report"
    assert one_line(" \n ") == ""
    assert len(one_line("x" * 500)) < 130
