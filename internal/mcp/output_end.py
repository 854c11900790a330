"""The last output of a program that failed, which has the reason."""

import re
from collections.abc import Iterable, Iterator

_NOISE = re.compile(
    r"\s*at .+|Node\.js v\d.*|[\s^~-]+|[{}\[\]();,]+|\(Use `node .*"
    r"|(?:errno|code|syscall|hostname|address|port|spawnargs): .*|npm (?:error|ERR!) \d+"
    r"|Traceback \(most recent call last\):|During handling of the above exception.*"
    r"|[|+\s-]+|(?:\| )+Traceback .*"
    r"|npm (?:error|ERR!)\s*(?:A complete log of this run.*|.*-debug-\d*\.log|Log files .*)?"
    r"|(?:npm error )?npm (?:notice|warn|WARN)\b.*|\[notice\] .*|hint: .*"
)
"""Lines after the reason: stack frames, the end of objects, notices of installers."""
_FRAME = re.compile(r'File ".+", line \d+(?:, in .+)?')
"""A frame of a traceback of Python; the line after it is the source."""
_CUT = "… "


def end_of_output(lines: Iterable[str], max_chars: int) -> str:
    """Return the last informative lines of an output, joined into one.

    A text that is too long loses its beginning.
    """
    written = [" ".join(line.split()) for line in lines]
    telling = [line for line in _without_frames(written) if line and not _NOISE.fullmatch(line)]
    text = " / ".join(telling or filter(None, written)).removesuffix(".")
    return text if len(text) <= max_chars else _CUT + text[len(_CUT) - max_chars :]


def _without_frames(lines: Iterable[str]) -> Iterator[str]:
    is_source = False
    for line in lines:
        plain = line.lstrip("| ")
        if _FRAME.fullmatch(plain):
            is_source = True
        elif is_source:
            is_source = False
        else:
            yield line
