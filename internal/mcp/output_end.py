"""The end of what a program wrote before it failed, where the reason is."""

import re
from collections.abc import Iterable

_NOISE = re.compile(
    r"\s*at .+|Node\.js v\d.*|[\s^~-]+|[{}\[\]();,]+|\(Use `node .*"
    r"|npm (?:error|ERR!)\s*(?:A complete log of this run.*|.*-debug-\d*\.log|Log files .*)?"
    r"|npm (?:notice|warn|WARN)\b.*|\[notice\] .*|hint: .*"
)
"""Lines after the reason: stack frames, the end of objects, notices of installers."""
_CUT = "… "


def end_of_output(lines: Iterable[str], max_chars: int) -> str:
    """Return the last lines of an output, joined to one, without those that say nothing.

    A text that is too long loses its beginning.
    """
    written = [" ".join(line.split()) for line in lines]
    telling = [line for line in written if line and not _NOISE.fullmatch(line)]
    text = " / ".join(telling or filter(None, written))
    return text if len(text) <= max_chars else _CUT + text[len(_CUT) - max_chars :]
