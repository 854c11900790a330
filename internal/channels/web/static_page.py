"""The page: what the build of `web/` left in `dist`, read once when the door is built.

Assets have a hash in their names and never change; only `index.html` is asked for again.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

DIST = Path(__file__).with_name("dist")
POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'"
)
"""What a browser lets the page do: nothing inline, nothing foreign, no frame around it."""
NOT_BUILT = (
    "The page is not built: run `make page` and start again; the API and the terminal work without."
)
FOREVER = "public, max-age=31536000, immutable"
_KINDS = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
_KINDS |= {".svg": "image/svg+xml", ".woff2": "font/woff2"}
_ENCODINGS = (("br", ".br"), ("gzip", ".gz"))


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the page, with what it is in each encoding; "" is the file itself."""

    media_type: str
    bodies: dict[str, bytes]

    def encoding(self, taken: Collection[str]) -> str:
        """Return the smallest encoding among those that a browser takes."""
        return next((one for one, _ in _ENCODINGS if one in self.bodies and one in taken), "")


@dataclass(frozen=True, slots=True)
class Page:
    """The built page; `index` is empty when it is not built."""

    index: bytes
    assets: dict[str, Asset]


def read_page(folder: Path = DIST) -> Page:
    """Read a built page; one that is not there is empty."""
    index = folder / "index.html"
    if not index.is_file():
        return Page(b"", {})
    return Page(
        index.read_bytes(),
        {
            file.name: _asset(file)
            for file in sorted((folder / "assets").iterdir())
            if file.suffix in _KINDS
        },
    )


def _asset(file: Path) -> Asset:
    bodies = {"": file.read_bytes()}
    for encoding, suffix in _ENCODINGS:
        compressed = file.with_name(file.name + suffix)
        if compressed.is_file():
            bodies[encoding] = compressed.read_bytes()
    return Asset(_KINDS[file.suffix], bodies)
