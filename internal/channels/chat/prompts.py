"""Prompt for a message: its text, and in a group the name of its author."""

import re

from internal.agent.domain.text import escape_delimiters, is_invisible

MAX_NAME_LENGTH = 80
LABEL_LENGTH = 6

_SEPARATORS = re.compile(r"""[\[\](){}<>"'`:|\\\uff1a\uff1c\uff1e\u3010\u3011]+""")


def speaker_name(name: str, user_id: str) -> str:
    """Return a name as the model reads it: one line without signs that delimit text.

    Without a name it is a label made of the end of the id.
    """
    visible = "".join(" " if is_invisible(each) else each for each in name)
    cleaned = " ".join(_SEPARATORS.sub(" ", visible).split())[:MAX_NAME_LENGTH].strip()
    return cleaned or f"user {user_id[-LABEL_LENGTH:]}"


def format_message(speaker: str, text: str) -> str:
    """Return the words of a person in a group; they cannot contain another person's."""
    return f'<message from="{speaker}">\n{escape_delimiters(text)}\n</message>'
