"""The labels of charsets as HTML, servers and mail write them, and the names that people read.

The table comes from https://encoding.spec.whatwg.org/#names-and-labels: programs labelled texts in
supersets as "gb2312" and "iso-8859-1" for so long that these labels now mean the supersets.
"""

import codecs

# the decoders of the standard accept more than Python's codecs of the same name
_WIDER_CODECS = {
    "big5": "big5hkscs",
    "euc-kr": "cp949",
    "gbk": "gb18030",
    "shift_jis": "cp932",
}
# of the standard: of one no text is known, the other stands for those that are unsafe in scripts
_UNREAD = frozenset({"x-user-defined", "replacement"})
# no charset of a text, or one in which a text can hide another
_EXCLUDED_CODECS = frozenset(
    {"idna", "palmos", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
)
_NAMES = {
    "big5hkscs": "Big5",
    "cp1250": "Windows-1250",
    "cp1251": "Windows-1251",
    "cp1252": "Windows-1252",
    "cp1253": "Windows-1253",
    "cp1254": "Windows-1254",
    "cp866": "IBM866",
    "cp932": "Shift_JIS",
    "cp949": "EUC-KR",
    "euc_jis_2004": "EUC-JP",
    "euc_jp": "EUC-JP",
    "iso2022_jp": "ISO-2022-JP",
    "utf-16-be": "UTF-16BE",
    "utf-16-le": "UTF-16LE",
    "utf-8-sig": "UTF-8",
}


def codec_of_label(label: str) -> str | None:
    """Return Python's codec for a declared encoding, None if it is unknown or encodes no text."""
    import webencodings  # type: ignore[import-untyped]  # noqa: PLC0415  # for few files

    wanted = label.strip(" \t\r\n\f\"'")
    found = webencodings.lookup(wanted)
    if found is not None and found.name not in _UNREAD:
        return _WIDER_CODECS.get(found.name) or str(found.codec_info.name)
    try:
        name = codecs.lookup(wanted).name
        "".encode(name)  # raises for codecs that do not encode text
    except (LookupError, ValueError):
        return None
    return None if name in _EXCLUDED_CODECS else name


def name_of(codec: str) -> str:
    """Return the name of a codec as people know it, such as Windows-1252."""
    return _NAMES.get(codec) or codec.upper()
