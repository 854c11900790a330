"""Globs of search_files: also by the names that they may mean.

Folders of web frameworks are called `[id]`, and a name may be written with other blanks, accents or
quotes than the file has. So a glob also matches the names that it has literally, and all that look
the same.
"""

import re
from collections.abc import Callable

from internal.normal_forms.names import fold_name
from internal.tools.search_fallback import glob_to_regex

_PIECE = re.compile(r"\\.|\[!?\]?[^\]/]*\]|.", re.DOTALL)
_PATTERN_SIGN = re.compile(r"(?<!\\)[\[\]{}]")
# ASCII signs with look-alikes: blanks, quotes, hyphens, and signs that input methods widen
_AMBIGUOUS = re.compile(r"""[ '"():;!&+=@#%~-]|[^\x00-\x7f]""")


class SearchGlob:
    """A glob, "" for all files.

    `patterns` are the patterns that an engine searches by. They may match too much: `accepts` then
    decides for each path in the folder; it is None if the patterns are exact.
    """

    def __init__(self, text: str) -> None:
        literal = _PATTERN_SIGN.sub(r"\\\g<0>", text)
        meant = [*dict.fromkeys((text, literal))] if text else []
        self.patterns = [*dict.fromkeys(map(_widened, meant))]
        self.accepts: Callable[[str], bool] | None = None
        if self.patterns != meant:
            self.accepts = _matcher(meant)


def _widened(glob: str) -> str:
    """Return a glob that also matches names which look the same."""
    pieces: list[str] = []
    for piece in _PIECE.findall(glob):
        if not _AMBIGUOUS.fullmatch(piece):
            pieces.append(piece)
        elif pieces[-1:] != ["*"]:
            pieces.append("*")
    return "".join(pieces)


def _matcher(globs: list[str]) -> Callable[[str], bool]:
    try:
        wanted = [re.compile(glob_to_regex(fold_name(glob)), re.DOTALL) for glob in globs]
    except re.error:  # the engine reports the error
        return lambda _: False

    def accepts(path: str) -> bool:
        return any(each.fullmatch(fold_name(path)) for each in wanted)

    return accepts
