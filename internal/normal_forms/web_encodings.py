"""Names of text encodings as web pages, servers and mail declare them.

The table of labels is that of the Encoding Standard (https://encoding.spec.whatwg.org/#names-and-labels),
by which browsers read `gb2312` as GBK and `iso-8859-1` as windows-1252.
"""

import codecs
import re

import webencodings  # type: ignore[import-untyped]  # has no type hints

# the standard's decoders accept more than Python's codecs of the same name
_WIDER_CODECS = {
    "big5": "big5hkscs",
    "euc-kr": "cp949",
    "gbk": "gb18030",
    "shift_jis": "cp932",
}
# labels of no encoding, and of those that are unsafe where scripts run
_UNREAD = frozenset({"x-user-defined", "replacement"})
_EXCLUDED_CODECS = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined", "utf-7"}
)
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins with the mark of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_PRESCAN_BYTES = 4_096  # browsers read 1,024; servers put scripts before the declaration
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_XML_DECLARATION = re.compile(rb"\s*<\?xml[^>]*?\sencoding\s*=\s*[\"']([^\"'>]+)", re.IGNORECASE)
_META_DECLARATION = re.compile(
    rb"<meta\s[^>]*?charset\s*=\s*[\"']?\s*([^\s\"'/>;]+)", re.IGNORECASE
)


def codec_of_label(label: str) -> str | None:
    """Return Python's codec for a declared encoding, None if it is unknown or encodes no text."""
    found = webencodings.lookup(label.strip().strip("'\""))
    if found is not None and found.name not in _UNREAD:
        return _WIDER_CODECS.get(found.name) or found.codec_info.name
    try:
        name = codecs.lookup(label).name
        "".encode(name)  # raises for codecs that do not encode text
    except (LookupError, ValueError):
        return None
    return None if name in _EXCLUDED_CODECS else name


def marked_codec(content: bytes) -> str | None:
    """Return the codec of a text that begins with a byte order mark, else None."""
    return next((codec for mark, codec in _BYTE_ORDER_MARKS if content.startswith(mark)), None)


def declared_codec(markup: bytes) -> str | None:
    """Return the codec that the beginning of an HTML or XML text declares, else None."""
    head = _COMMENT.sub(b"", markup[:_PRESCAN_BYTES])
    found = _XML_DECLARATION.match(head) or _META_DECLARATION.search(head)
    if found is None:
        return None
    codec = codec_of_label(found[1].decode("latin-1"))
    # the declaration was read as ASCII, so the text cannot be UTF-16
    return "utf-8" if codec is not None and codec.startswith("utf-16") else codec


def is_utf8(content: bytes) -> bool:
    """Return True for UTF-8, also if the last character is cut off."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(content)
    except UnicodeDecodeError:
        return False
    return True
