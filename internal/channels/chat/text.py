"""Small rules about text: how it is cut and measured."""

import re

_BREAKS = re.compile("[\n\u3002\uff01\uff1f.!?]\\s*")


def truncate_text(text: str, most: int) -> str:
    """Return the text on one line, at most so many characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def size(text: str) -> int:
    """Return the bytes in UTF-8."""
    return len(text.encode("utf-8", "replace"))


def head(text: str, most: int) -> str:
    """Return the beginning, at most so many bytes, ended at a sentence where there is one."""
    cut = text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")
    if cut == text:
        return text
    ends = [found.end() for found in _BREAKS.finditer(cut)]
    good = next((end for end in reversed(ends) if end > len(cut) // 2), len(cut))
    return cut[:good].rstrip()


def chunks(text: str, most: int) -> list[str]:
    """Return the text in pieces of at most so many bytes, none of them blank."""
    pieces: list[str] = []
    while text.strip():
        pieces.append(head(text, most))
        text = text[len(pieces[-1]) :].lstrip()
    return pieces
