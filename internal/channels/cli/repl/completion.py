"""Completion of slash commands, their values, and file names after `@`."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from internal.channels.cli.render.text import sanitize
from internal.channels.cli.repl.file_mentions import as_mention, mention_start
from internal.channels.commands.command import Values
from internal.normal_forms.names import fold_name

_MAX_FILES = 200
_HIDDEN = "."


class SessionCompleter(Completer):
    """Completes the word before the cursor.

    `commands` returns command names with their descriptions, `values` the values of a command.
    """

    def __init__(
        self,
        folder: Path,
        commands: Callable[[], Mapping[str, str]],
        values: Callable[[str], Values],
    ) -> None:
        self._folder = folder
        self._commands = commands
        self._values = values

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002 - the name is prompt_toolkit's
    ) -> Iterable[Completion]:
        """Yield the matching completions, in order."""
        before = document.text_before_cursor
        if before.startswith("/") and "\n" not in before:
            name, blank, rest = before[1:].partition(" ")
            yield from self._value(name, rest) if blank else self._command(name)
            return
        if (start := mention_start(before)) >= 0:
            yield from self._file(before[start:])

    def _command(self, name: str) -> Iterable[Completion]:
        for known, meaning in self._commands().items():
            if known.startswith(name.lower()):
                yield Completion(f"/{known}", -len(name) - 1, display_meta=meaning)

    def _value(self, name: str, rest: str) -> Iterable[Completion]:
        words = rest.lower().split()
        for value in self._values(name):
            # any part of the value or of its description
            known = f"{value.text} {value.meaning}".lower()
            if all(word in known for word in words):
                yield Completion(value.text, -len(rest), display_meta=sanitize(value.meaning))

    def _file(self, written: str) -> Iterable[Completion]:
        folder, _, start = written.lstrip("\"'").replace("\\ ", " ").rpartition("/")
        try:
            with os.scandir(self._folder / folder) as entries:
                found = sorted(
                    (entry.name, entry.is_dir())
                    for entry in entries
                    if fold_name(entry.name).startswith(fold_name(start))
                    and (start or not entry.name.startswith(_HIDDEN))
                    and entry.name.isprintable()
                )
        except (OSError, ValueError):
            return
        for name, is_folder in found[:_MAX_FILES]:
            path = f"{folder}/{name}" if folder else name
            mention = as_mention(f"{path}{'/' * is_folder}")
            if is_folder:
                mention = mention.removesuffix('"')  # the name goes on
            yield Completion(mention, -len(written) - 1, display=path)
