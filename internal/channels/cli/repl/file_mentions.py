"""Files that `@` names in a message, also in languages that put no blanks between words."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from internal.channels.cli.input_files import InputFile, check_file, existing_path

# not behind the sign of a word, as in an address of mail; a Chinese character may stand before it
_START = re.compile(r"(?<![A-Za-z0-9_.%+/\\@-])@")
_RUN = re.compile(r"(?:\\ |\S)+")
_LATIN = re.compile(r"[A-Za-z0-9_]{2}")
_QUOTES = {
    '"': '"',
    "'": "'",
    "`": "`",
    "\u201c": "\u201d",
    "\u2018": "\u2019",
    "\u300c": "\u300d",
    "\u300a": "\u300b",
}
_MAX_RUN, _MAX_SHORTER = 4_096, 300


def mentioned_files(text: str, folder: Path) -> list[InputFile]:
    """Return the files that `@` names in a text, each once. Other words with `@` are text.

    Of a name that runs on into the sentence, the longest beginning that is a file counts. Names
    with blanks are in quotation marks, or have a backslash before each blank.

    Raises:
        CliExit: a file cannot be attached.
    """
    found: dict[str, InputFile] = {}
    list_folder = cache(os.listdir)
    for start in _START.finditer(text):
        for name in _names_at(text, start.end()):
            path = os.path.expanduser(os.path.join(folder, name))  # noqa: PTH111, PTH118 - never raises
            with suppress(OSError, ValueError):
                path = existing_path(path, list_folder)
                if Path(path).is_file():
                    found.setdefault(os.path.realpath(path), check_file(path))
                    break
    return [*found.values()]


def mention_start(text: str) -> int:
    """Return where the name begins of a mention that is being written, -1 if there is none."""
    starts = [start.end() for start in _START.finditer(text)]
    if not starts:
        return -1
    at = starts[-1]
    closing = _QUOTES.get(text[at : at + 1])
    if closing is not None:
        return -1 if closing in text[at + 1 :] else at
    run = _RUN.match(text, at)
    return at if at == len(text) or (run is not None and run.end() == len(text)) else -1


def as_mention(path: str) -> str:
    """Return the mention of a path in a message, in quotation marks if the path has blanks."""
    return f'@"{path}"' if re.search(r"\s", path) else f"@{path}"


def _names_at(text: str, at: int) -> Iterator[str]:
    """Yield the possible names that begin at a position, the longest first."""
    closing = _QUOTES.get(text[at : at + 1])
    if closing is not None and (end := text.find(closing, at + 1, at + _MAX_RUN)) > 0:
        yield text[at + 1 : end]
    run = _RUN.match(text, at, at + _MAX_RUN)
    if run is None:
        return
    word = run[0]
    yield word
    yield word.replace("\\ ", " ")
    for end in range(min(len(word) - 1, _MAX_SHORTER), 0, -1):
        # within a Latin word no name ends
        if not _LATIN.fullmatch(word[end - 1 : end + 1]):
            yield word[:end]
            if "\\ " in word[:end]:
                yield word[:end].replace("\\ ", " ")
