"""Long pastes: a placeholder stands for them in the input until it is sent."""

from collections.abc import Callable

from internal.channels.cli.task_request import File

_MAX_LINES, _MAX_CHARACTERS = 8, 800
"""A longer paste becomes a placeholder."""
_MAX_TEXT_CHARACTERS = 100_000
"""A longer paste is sent as a file."""


class PasteBuffer:
    """Stores pasted text by placeholder. `name` makes a label from a number and a line count."""

    def __init__(self, name: Callable[[int, int], str]) -> None:
        self._name = name
        self._kept: dict[str, str] = {}

    def add(self, text: str) -> str:
        """Return what to insert into the input: the text, or a placeholder for it."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + 1
        if lines <= _MAX_LINES and len(text) <= _MAX_CHARACTERS:
            return text
        placeholder = f"[{self._name(len(self._kept) + 1, lines)}]"
        self._kept[placeholder] = text
        return placeholder

    def expand(self, text: str) -> str:
        """Return a text with every placeholder replaced by its paste, whatever the length."""
        for placeholder, pasted in self._kept.items():
            text = text.replace(placeholder, pasted)
        return text

    def expand_to_files(self, text: str) -> tuple[str, list[File]]:
        """Return a text with its placeholders replaced, and the pastes that are sent as files."""
        files: list[File] = []
        for placeholder, pasted in self._kept.items():
            if placeholder not in text:
                continue
            if len(pasted) > _MAX_TEXT_CHARACTERS:
                name = f"pasted-{len(files) + 1}.txt"
                files.append(File(name, "text/plain", pasted.encode("utf-8", "replace")))
                text = text.replace(placeholder, f"[{name}]")
            else:
                text = text.replace(placeholder, pasted)
        return text, files
