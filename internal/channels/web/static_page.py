"""The built page: the files in `dist`, read once at start.

Asset names contain a hash, so assets are cached forever. `index.html`, the manifest and the icons
of an installed page, and the notices have fixed names and are revalidated.
"""

import re
from base64 import b64encode
from collections.abc import Collection
from hashlib import sha256
from pathlib import Path

import msgspec

DIST = Path(__file__).with_name("dist")
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'; img-src 'self' blob:"
)
"""No inline scripts or styles, nothing from other origins, no embedding in frames.

Pictures also come from `blob:` addresses: links and images cannot send the login key.
"""
# The document is sanitised before it arrives. Its own frame has no scripts and no origin, and
# inherits the policy of this one.
_PREVIEW_SCRIPT = (
    "addEventListener('message', (event) => {"
    " if (event.source !== parent) return;"
    " const frame = document.createElement('iframe');"
    " frame.setAttribute('sandbox', '');"
    " frame.srcdoc = event.data;"
    " document.body.replaceChildren(frame); });"
)
PREVIEW = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Preview</title>'
    "<style>iframe { position: fixed; inset: 0; width: 100%; height: 100%; border: 0 }</style>"
    f"<script>{_PREVIEW_SCRIPT}</script><body></body></html>"
).encode()
"""A frame that shows the HTML document that the page sends to it, with its inline styles."""
_PREVIEW_HASH = b64encode(sha256(_PREVIEW_SCRIPT.encode()).digest()).decode()
PREVIEW_POLICY = (
    f"sandbox allow-scripts; default-src 'none'; script-src 'sha256-{_PREVIEW_HASH}'; "
    "style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'"
)
"""Nothing is loaded, and no script runs but that of the frame."""
NOT_BUILT_MESSAGE = (
    "The page has not been built. Run `make page` and restart. The API and the terminal work"
    " without it."
)
IMMUTABLE = "public, max-age=31536000, immutable"
_MEDIA_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
    ".txt": "text/plain; charset=utf-8",
}
NOTICES = "THIRD-PARTY-NOTICES.txt"
"""The licences of the packages whose code is in the page; the build writes it."""
_FIXED = ("*.webmanifest", "icons/*.png", NOTICES)
_RELATIVE = re.compile(rb'\b(src|href)="\./')
_ENCODINGS = (("br", ".br"), ("gzip", ".gz"))


class Asset(msgspec.Struct, frozen=True):
    """A file of the page with its body per content encoding; "" is the uncompressed one."""

    media_type: str
    bodies: dict[str, bytes]

    def best_encoding(self, accepted: Collection[str]) -> str:
        """Return the smallest encoding that the browser accepts."""
        return next(
            (name for name, _ in _ENCODINGS if name in self.bodies and name in accepted), ""
        )


class Page(msgspec.Struct, frozen=True):
    """The built page; `index` is empty if it has not been built.

    `fixed` are the files with fixed names, by their path below the page's address.
    """

    index: bytes
    assets: dict[str, Asset]
    fixed: dict[str, Asset] = msgspec.field(default_factory=dict)


def read_page(folder: Path = DIST) -> Page:
    """Read a built page; return an empty one if there is none."""
    index = folder / "index.html"
    if not index.is_file():
        return Page(b"", {})
    files = sorted((folder / "assets").iterdir())
    assets = {file.name: _read_asset(file) for file in files if file.suffix in _MEDIA_TYPES}
    fixed = {
        file.relative_to(folder).as_posix(): _read_asset(file)
        for pattern in _FIXED
        for file in folder.glob(pattern)
    }
    return Page(index.read_bytes(), assets, fixed)


def index_below(page: Page, path: str) -> bytes:
    """Return the document of a page that is served below a path, such as `/larkspur`.

    Its addresses are relative, which would count from the address that is opened.
    """
    given = path.encode()
    addressed = _RELATIVE.sub(rb'\1="' + given + b"/", page.index)
    return addressed.replace(b"<html ", b'<html data-path="' + given + b'" ', 1)


def _read_asset(file: Path) -> Asset:
    bodies = {"": file.read_bytes()}
    for encoding, suffix in _ENCODINGS:
        compressed = file.with_name(file.name + suffix)
        if compressed.is_file():
            bodies[encoding] = compressed.read_bytes()
    return Asset(_MEDIA_TYPES[file.suffix], bodies)
