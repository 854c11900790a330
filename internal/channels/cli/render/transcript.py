"""A session as a Markdown file."""

from collections.abc import Iterable

from internal.channels.cli.records import TranscriptMessage
from internal.i18n.language import Language
from internal.i18n.runs import RunMessages


def transcript_markdown(
    messages: Iterable[TranscriptMessage], session_id: str, language: Language = "en"
) -> str:
    """Return the messages of a session as Markdown, with quotes for messages of the user.

    A message that nobody wrote is replaced by a line about the event.
    """
    words = RunMessages(language)
    parts = [f"<!-- {session_id} -->"]
    for one in messages:
        text = one.text.strip()
        if one.unwritten:
            text = f"*{words.unwritten(one.unwritten)}*"
        elif one.role == "user":
            text = "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
        parts.append(text)
    return "\n\n".join(parts) + "\n"
