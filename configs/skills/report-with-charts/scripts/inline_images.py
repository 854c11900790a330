"""Put the local images of an HTML file into it, so that it is complete in one file.

Only images in the folder of the HTML file are read; others and missing ones are reported.
"""

from __future__ import annotations

import argparse
import base64
import re
import sys
from html import escape, unescape
from pathlib import Path
from urllib.parse import unquote

MAX_BYTES = 20_000_000
TYPES = {
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
_SOURCE = re.compile(r"""(<img\b[^<>]{0,2000}?\ssrc\s*=\s*)("[^"<>]*"|'[^'<>]*')""", re.IGNORECASE)


class ImageRefused(Exception):
    """An image is not put into the file; the text says why."""


def main() -> None:
    """Read the arguments and write the complete file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input", type=Path, help="the HTML file")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the file to write")
    args = parser.parse_args()
    problems: list[str] = []
    try:
        text = read(args.input).decode("utf-8-sig")
        complete = _SOURCE.sub(lambda found: inline(found, args.input, problems), text)
        args.output.write_text(complete, encoding="utf-8")
    except (ImageRefused, OSError, UnicodeError) as error:
        problems.append(f"{args.input}: {error}")
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        sys.exit(1)
    print(f"{args.output}: {args.output.stat().st_size:,} bytes")


def inline(found: re.Match[str], page: Path, problems: list[str]) -> str:
    """Return an image with its content instead of its path."""
    source = unescape(found[2][1:-1]).strip()
    if source.startswith("data:"):
        return found[0]
    try:
        path = local_image(source, page.resolve().parent)
        content = base64.b64encode(read(path)).decode()
    except (ImageRefused, OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        problems.append(f"The image {escape(source[:200])} is left as it is: {reason}.")
        return found[0]
    return f'{found[1]}"data:{TYPES[path.suffix.lower()]};base64,{content}"'


def local_image(source: str, folder: Path) -> Path:
    """Return the file of an image in a folder."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:|//", source):
        raise ImageRefused("it is not a local file")
    path = (folder / unquote(source)).resolve()
    if not path.is_relative_to(folder):
        raise ImageRefused("it is outside of the folder of the HTML file")
    if path.suffix.lower() not in TYPES:
        raise ImageRefused("it is not an SVG, PNG, JPEG, GIF or WebP file")
    return path


def read(path: Path) -> bytes:
    """Return the content of a file that is not too large."""
    if not path.is_file():
        raise ImageRefused("there is no such file")
    if path.stat().st_size > MAX_BYTES:
        raise ImageRefused(f"it has more than {MAX_BYTES:,} bytes")
    return path.read_bytes()


if __name__ == "__main__":
    main()
