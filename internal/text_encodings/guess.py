"""The likeliest encoding of bytes that name none and are not UTF-8.

docs/adr/0014-encodings.md has the measurements behind the choices.
"""

import re
from typing import Any

_CANDIDATES = (
    *("gb18030", "big5hkscs", "cp932", "euc-jp", "cp949", "cp1252", "cp1251", "koi8-r", "koi8-u"),
    *("cp866", "cp1250", "cp1253", "cp1254"),
)
_SIBLINGS = frozenset({"cp1250", "cp1253", "cp1254"})
"""Code pages that have most letters of the Western one in the same places."""
_OTHER_SCRIPTS = frozenset({"cp1251", "cp1253", "cp866", "koi8-r", "koi8-u"})
_MIN_WESTERN_SHARE = 0.8
# a Latin letter beside one of another script, in one word
_MIXED_WORD = re.compile(r"[a-zA-Z](?=[^\W\d_a-zA-Z])|(?<=[^\W\d_a-zA-Z])[a-zA-Z]")
_WESTERN_LETTERS = frozenset("äöüÄÖÜßéèêëÉÈÊàâáãåÀÂÁÃÅçÇíîïìÍÎñÑóòôõøÓÒÔÕØúùûÚÙÛæœÆŒªº¿¡ð²³½¼")
_SIGNS = frozenset(
    sign
    for byte in range(0x80, 0x100)
    if not (sign := bytes([byte]).decode("cp1252", "replace")).isalpha()
    and sign == bytes([byte]).decode("cp1250", "replace") != "\ufffd"
)
"""Signs that are the same in the Western and in the Central European code page."""
_ESCAPE_JAPANESE = (b"\x1b$B", b"\x1b$@", b"\x1b(J")


def guess_codec(sample: bytes) -> str:
    """Return the codec that a sample of a text is most likely in."""
    western = sample.decode("cp1252", "replace")
    beyond = {sign for sign in western if sign > "\x7f"}
    if beyond <= _SIGNS and not _has_neighbours(western):
        return "cp1252"
    codec, confidences = _rank(sample)
    if codec in _SIBLINGS and beyond <= _WESTERN_LETTERS | _SIGNS:
        share = confidences.get("cp1252", 0.0) / confidences[codec]
        is_western = share >= _MIN_WESTERN_SHARE or western == sample.decode(codec, "replace")
        codec = "cp1252" if is_western else codec
    if codec in _OTHER_SCRIPTS and _mixes_scripts(sample.decode(codec, "replace")):
        return "cp1252"
    return codec or "cp1252"


def is_escaped_japanese(content: bytes) -> bool:
    """Return True for ISO-2022-JP, which looks like ASCII with escape sequences."""
    if not any(sequence in content for sequence in _ESCAPE_JAPANESE):
        return False
    try:
        content.decode("iso2022_jp")
    except UnicodeDecodeError:
        return False
    return True


def _rank(sample: bytes) -> tuple[str, dict[str, float]]:
    import chardet  # noqa: PLC0415  # takes 20 ms, for files that few people have

    found: list[dict[str, Any]] = [
        dict(each)
        for each in chardet.detect_all(
            sample, ignore_threshold=True, include_encodings=_CANDIDATES, compat_names=False
        )
    ]
    confidences = {str(each["encoding"]): float(each["confidence"]) for each in found}
    return str(found[0]["encoding"] or ""), confidences


def _mixes_scripts(text: str) -> bool:
    """Return True if most letters beyond ASCII stand beside Latin ones, as in no Russian word."""
    letters = sum(sign > "\x7f" and sign.isalpha() for sign in text)
    return 2 * len(_MIXED_WORD.findall(text)) > letters


def _has_neighbours(text: str) -> bool:
    """Return True if two signs beyond ASCII touch, as the bytes of one Chinese character do."""
    before = ""
    for sign in text:
        if sign > "\x7f" and before > "\x7f" and "\xa0" not in (sign, before):
            return True
        before = sign
    return False
