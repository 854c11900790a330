"""A session as a Markdown file."""

from collections.abc import Iterable

from internal.channels.cli.records import TranscriptMessage


def transcript_markdown(messages: Iterable[TranscriptMessage], session_id: str) -> str:
    """Return the messages of a session, with those of the user as quotes."""
    parts = [f"<!-- {session_id} -->"]
    for one in messages:
        text = one.text.strip()
        if one.role == "user":
            text = "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
        parts.append(text)
    return "\n\n".join(parts) + "\n"
