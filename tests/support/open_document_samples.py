"""OpenDocument files."""

from tests.support import documents

_SCHEMA = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
_NAMES = ("office", "text", "table", "draw", "style", "presentation")
_SPACES = " ".join(f'xmlns:{name}="{_SCHEMA.format(name)}"' for name in _NAMES)
_SPACES += ' xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:dc="http://purl.org/dc/elements/1.1/"'


def open_document(kind: str, body: str, styles: str = "", manifest: str = "") -> bytes:
    return documents.archive(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "META-INF/manifest.xml": f"<manifest>{manifest}</manifest>",
            "content.xml": f"<office:document-content {_SPACES}><office:automatic-styles>{styles}"
            f"</office:automatic-styles><office:body><office:{kind}>{body}</office:{kind}>"
            "</office:body></office:document-content>",
        }
    )
