"""A session as a Markdown file."""

from collections.abc import Iterable

from internal.channels.cli.records import TranscriptMessage


def transcript_markdown(said: Iterable[TranscriptMessage], session_id: str) -> str:
    """Return what was said: a person's words as quotes, the agent's as they are."""
    parts = [f"<!-- {session_id} -->"]
    for one in said:
        text = one.text.strip()
        if one.role == "user":
            text = "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
        parts.append(text)
    return "\n\n".join(parts) + "\n"
