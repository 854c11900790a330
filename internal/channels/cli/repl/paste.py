"""Pastes: a placeholder stands for a long text or a file in the input until it is sent."""

import os
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from internal.channels.cli.input_files import MAX_FILES, InputFile

_MAX_LINES, _MAX_CHARACTERS = 8, 800
"""A longer paste becomes a placeholder."""
_MAX_TEXT_CHARACTERS = 100_000
"""A longer paste is sent as a file."""
_MAX_PATHS_CHARACTERS = 50_000
_LOCAL_HOSTS = {"", "localhost"}


class PasteBuffer:
    """Stores pasted text and files by placeholder.

    `name` makes a label of a text from a number and a line count.
    """

    def __init__(self, name: Callable[[int, int], str]) -> None:
        self._name = name
        self._kept: dict[str, str] = {}
        self._files: dict[str, InputFile] = {}

    def add(self, text: str) -> str:
        """Return the text to insert into the input: the pasted text, or a placeholder for it."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + 1
        if lines <= _MAX_LINES and len(text) <= _MAX_CHARACTERS:
            return text
        placeholder = f"[{self._name(len(self._kept) + 1, lines)}]"
        self._kept[placeholder] = text
        return placeholder

    def add_file(self, file: InputFile) -> str:
        """Return a placeholder for a file."""
        number, placeholder = 1, f"[{file.name}]"
        while self._files.get(placeholder, file) != file:
            number += 1
            placeholder = f"[{file.name} {number}]"
        self._files[placeholder] = file
        return placeholder

    def add_picture(self, content: bytes) -> str:
        """Return a placeholder for a picture in PNG."""
        pictures = sum(not file.path for file in self._files.values())
        name = f"picture-{pictures + 1}.png"
        return self.add_file(InputFile(name, "image/png", len(content), content=content))

    def expand(self, text: str) -> str:
        """Return a text with every placeholder of a text replaced, whatever the length."""
        for placeholder, pasted in self._kept.items():
            text = text.replace(placeholder, pasted)
        return text

    def expand_to_files(self, text: str) -> tuple[str, list[InputFile]]:
        """Return a text with its placeholders replaced, and the pastes that are sent as files.

        The placeholder of a file stays: it refers to the attached file.
        """
        files = [file for placeholder, file in self._files.items() if placeholder in text]
        texts = 0
        for placeholder, pasted in self._kept.items():
            if placeholder not in text:
                continue
            if len(pasted) > _MAX_TEXT_CHARACTERS:
                texts += 1
                name, content = f"pasted-{texts}.txt", pasted.encode("utf-8", "replace")
                files.append(InputFile(name, "text/plain", len(content), content=content))
                text = text.replace(placeholder, f"[{name}]")
            else:
                text = text.replace(placeholder, pasted)
        return text, files


def pasted_paths(text: str) -> list[str]:
    """Return the paths if a paste names existing files and nothing else, as dropping files does.

    Paths are absolute, begin with `~/`, or are `file://` URLs; they may be quoted or escaped.
    """
    text = text.strip()
    if not text or len(text) > _MAX_PATHS_CHARACTERS:
        return []
    if "\n" not in text and (whole := _existing(text)):
        return [whole]  # also with spaces that are not escaped
    try:
        words = shlex.split(text)
    except ValueError:  # an open quotation
        return []
    paths = [_existing(word) for word in words[: MAX_FILES + 1]]
    return [path for path in paths if path] if all(paths) else []


def _existing(word: str) -> str:
    """Return the path of a file that a word names, "" if there is none."""
    if word.startswith("file://"):
        with suppress(ValueError):
            url = urlsplit(word)
            word = unquote(url.path) if url.netloc in _LOCAL_HOSTS else ""
    elif word.startswith("~/"):
        word = os.path.expanduser(word)  # noqa: PTH111 - never raises
    with suppress(OSError, ValueError):
        if word.startswith("/") and Path(word).is_file():
            return word
    return ""
