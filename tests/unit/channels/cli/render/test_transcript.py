"""A session as a Markdown file."""

from internal.channels.cli.records import TranscriptMessage
from internal.channels.cli.render.transcript import transcript_markdown


def test_what_nobody_wrote_is_a_line_and_no_quote() -> None:
    messages = [
        TranscriptMessage("user", "count\nthe herons", ""),
        TranscriptMessage("user", "Continue where …", "", "resumed"),
        TranscriptMessage("assistant", "Nine.", ""),
        TranscriptMessage("user", "[Background tasks …]", "", "report"),
    ]
    assert transcript_markdown(messages, "s-1") == (
        "<!-- s-1 -->\n\n> count\n> the herons\n\n*Resumed.*\n\nNine.\n\n"
        "*Report of ended background tasks.*\n"
    )
    assert "*已继续执行。*" in transcript_markdown(messages, "s-1", "zh")
