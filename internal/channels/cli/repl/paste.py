"""Pastes that are too long for the box: a chip stands for them until they are sent."""

from collections.abc import Callable

from internal.channels.cli.task_request import File

_LINES, _CHARACTERS = 8, 800
"""A paste with more than this becomes a chip."""
_LONGEST = 100_000
"""A paste with more characters goes along as a file."""


class PasteChips:
    """Keeps pasted text by the name of its chip. `name` makes one from its number and lines."""

    def __init__(self, name: Callable[[int, int], str]) -> None:
        self._name = name
        self._kept: dict[str, str] = {}

    def take(self, text: str) -> str:
        """Return what is to stand in the box: the text, or its chip."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + 1
        if lines <= _LINES and len(text) <= _CHARACTERS:
            return text
        chip = f"[{self._name(len(self._kept) + 1, lines)}]"
        self._kept[chip] = text
        return chip

    def whole(self, text: str) -> str:
        """Return a text with all of its chips opened, however long they are."""
        for chip, pasted in self._kept.items():
            text = text.replace(chip, pasted)
        return text

    def open(self, text: str) -> tuple[str, list[File]]:
        """Return a text with its chips opened, and as files those that are too long for it."""
        files: list[File] = []
        for chip, pasted in self._kept.items():
            if chip not in text:
                continue
            if len(pasted) > _LONGEST:
                name = f"pasted-{len(files) + 1}.txt"
                files.append(File(name, "text/plain", pasted.encode("utf-8", "replace")))
                text = text.replace(chip, f"[{name}]")
            else:
                text = text.replace(chip, pasted)
        return text, files
