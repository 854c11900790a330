"""The program of the child process that reads one file.

It is run as a file (`python -I -S child.py ARGUMENT…`), with the file on standard input, and
imports only the modules for the kind of the file. The answer is one line of JSON, followed by the
text or the picture. The reader passes the kind that the beginning of the file has, so that nothing
of the file is read before the system calls are denied.
"""

import codecs
import encodings
import json
import os
import sys
from importlib import import_module
from typing import Any, BinaryIO, Literal, NamedTuple

if __name__ == "__main__":
    sys.path += sys.argv[1].split(os.pathsep)

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.confinement import deny_system_calls, limit_resources
from internal.documents.extraction import OtherReaderNeeded, cut
from internal.documents.kinds import ENCODED_KINDS, PACKAGES, entry_key

READERS = {
    "csv": ("plain_text", "read_text"),
    "docx": ("docx", "read_docx"),
    "docx+html": ("word_chunks", "read_docx_with_html"),
    "epub": ("epub", "read_epub"),
    "gzip": ("archives", "read_tar"),
    "html": ("html_to_markdown", "read_html"),
    "mail": ("mail", "read_mail"),
    "msg": ("outlook", "read_msg"),
    "odp": ("open_document", "read_odp"),
    "ods": ("open_document", "read_ods"),
    "odt": ("open_document", "read_odt"),
    "pdf": ("pdf", "read_pdf"),
    "pptx": ("pptx", "read_pptx"),
    "tar": ("archives", "read_tar"),
    "text": ("plain_text", "read_text"),
    "tsv": ("plain_text", "read_text"),
    "xls": ("xls", "read_xls"),
    "xlsb": ("xlsb", "read_xlsb"),
    "xlsx": ("xlsx", "read_xlsx"),
    "xmlss": ("xml_spreadsheet", "read_xml_spreadsheet"),
    "zip": ("archives", "read_zip"),
}
"""The module of each kind, and its function from an open file to an `ExtractedDocument`."""

_PICTURE_READERS = {
    "heif": ("heif_pictures", "prepare_heif"),
    "picture": ("pictures", "prepare_picture"),
}
_KINDS_WITH_THREADS = frozenset({"heif"})
_OLE_SEARCH_BYTES = 4_000_000
_ENCRYPTED_OFFICE = "EncryptedPackage"
_OLE_KINDS = {"__substg1.0_": "msg", "Workbook\0": "xls", "Book\0": "xls"}
"""The kind of an OLE file by the beginning of the name of one of its streams."""
_CODECS = (
    *("ascii", "cp437", "gb18030", "idna", "latin-1", "unicode-escape", "utf-8-sig"),
    *("utf-16", "utf-16-be", "utf-16-le", "utf-32", "utf-32-be", "utf-32-le"),
)
_MAIL_CODECS = (
    *("big5", "big5hkscs", "cp866", "euc-jp", "euc-kr", "gbk", "iso2022-jp", "koi8-r", "koi8-u"),
    *("hz", "iso2022-kr", "mac-cyrillic", "mac-roman", "raw-unicode-escape", "shift-jis"),
    *("tis-620", "utf-7"),
    *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16)),
    *(f"cp{page}" for page in (874, 932, 949, 950, *range(1250, 1259))),
)
"""The encodings that a message and its parts may name."""

_MANY_ENCODINGS = frozenset({"docx+html", "mail", "msg"})

_OFFICE_PARTS = {
    "xl/workbook.bin": "xlsb",
    "word/document": "docx",
    "ppt/presentation": "pptx",
    "xl/workbook": "xlsx",
    "word/": "docx",
    "ppt/": "pptx",
    "xl/": "xlsx",
}
"""The kind of an Office file by its entries; those that come first decide."""
_OTHER_OLE_STREAMS = ("WordDocument\0", "PowerPoint Document\0")
_WORKBOOK_EXTENSIONS = frozenset({"et", "xls", "xlt"})
_OPEN_DOCUMENT_TYPES = {"text": "odt", "spreadsheet": "ods", "presentation": "odp"}
_MAX_TYPE_BYTES = 100
_ARCHIVES = PACKAGES | {"zip"}


class ChildRequest(NamedTuple):
    """The request for a file: its text from `offset` on, the picture of a page, or Markdown.

    `kind` is the kind of the file, `codec` its text encoding, "" for binary files. `extension` is
    the extension of its name, or the address of a web page. `offset` is also the number of a page.
    """

    wanted: Literal["text", "picture", "html"]
    kind: str
    codec: str
    extension: str
    offset: int
    size: int


class ChildAnswer(NamedTuple):
    """The header and the content of an answer."""

    header: dict[str, Any]
    content: bytes = b""


def main(arguments: list[str]) -> None:
    """Read the file on standard input and write the answer to standard output."""
    with open(os.devnull, "wb") as null:  # noqa: PTH123  # Path need not be imported
        os.dup2(null.fileno(), 2)  # libraries print to it, and the sandbox has one pipe for both
    memory, cpu, wanted, kind, codec, extension, offset, size = arguments
    limit_resources(int(memory), int(cpu), may_start_threads=kind in _KINDS_WITH_THREADS)
    answer = _answer(ChildRequest(wanted, kind, codec, extension, int(offset), int(size)))  # type: ignore[arg-type]  # of the reader
    line = json.dumps(answer.header).encode() + b"\n"
    with os.fdopen(1, "wb", closefd=False) as output:
        output.write(line + answer.content)


def _answer(request: ChildRequest) -> ChildAnswer:
    try:
        before = _identity()
        with os.fdopen(0, "rb", closefd=False) as file:
            match request.wanted:
                case "picture":
                    answer = _picture(file, request)
                case "html":
                    answer = _markdown(file, request)
                case _:
                    answer = _text(file, request)
        if _identity() != before:
            return ChildAnswer(
                {"unreadable": "The file was changed while it was read: read it again."}
            )
    except DocumentUnreadable as error:
        return ChildAnswer({"unreadable": str(error)})
    except MemoryError:
        return ChildAnswer({"unreadable": "Reading the file needs too much memory."})
    except RecursionError:
        return ChildAnswer({"unreadable": "The file is damaged: it is nested too deeply."})
    except Exception as error:  # noqa: BLE001  # of the parsers, for damaged files
        return ChildAnswer({"failure": _describe(error)})
    return answer


def _describe(error: Exception) -> str:
    """Return type and place of an error, without its text, which may quote the document."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return f"{type(error).__name__} at {where}"


def _identity() -> tuple[int, int]:
    status = os.fstat(0)
    return status.st_size, status.st_mtime_ns


def _picture(file: BinaryIO, request: ChildRequest) -> ChildAnswer:
    """Return a picture, or the picture of a page of a PDF."""
    if request.kind == "pdf":
        open_pdf, picture_of_page = (
            _imported("pdf", "open_pdf"),
            _imported("pictures", "picture_of_page"),
        )
        _confine()
        file.seek(0)
        document = open_pdf(file)
        picture, pages = picture_of_page(document, request.offset), len(document)
    elif request.kind in _PICTURE_READERS:
        prepare = _imported(*_PICTURE_READERS[request.kind])
        _confine(may_start_threads=request.kind in _KINDS_WITH_THREADS)
        file.seek(0)
        picture, pages = prepare(file), 1
    else:
        raise DocumentUnreadable("It is not a picture of a kind that can be shown.")
    media_type, width, height, content = picture
    header = {"media_type": media_type, "width": width, "height": height, "parts": pages}
    return ChildAnswer({**header, "unchanged": content is None}, content or b"")


def _text(file: BinaryIO, request: ChildRequest) -> ChildAnswer:
    kind = request.kind
    if kind not in READERS:
        _confine()
        if kind == "ole" and (held := _kind_of_ole(file, request.extension)) != kind:
            return ChildAnswer({"kind": held, "is_other_kind": True})
        raise DocumentUnreadable(_refusal(file, kind, request.extension))
    read = _imported(*READERS[kind])
    if kind in _ARCHIVES:
        import_module("zipfile")
    _confine(request.codec, *(_MAIL_CODECS if kind in _MANY_ENCODINGS else ()))
    if kind in _ARCHIVES and (held := _kind_of_package(file, request.extension)) != kind:
        return ChildAnswer({"kind": held, "is_other_kind": True})
    file.seek(0)
    try:
        document = read(file, request.codec) if kind in ENCODED_KINDS else read(file)
    except OtherReaderNeeded as needed:
        return ChildAnswer({"kind": needed.kind, "is_other_kind": True})
    part = cut(document.pieces, request.offset, request.size)
    text = document.if_empty if part.total == 0 else part.text
    header = {"kind": kind.partition("+")[0], "parts": document.parts}
    header |= {"next_offset": part.next_offset, "total": part.total}
    return ChildAnswer(header, text.encode("utf-8", "replace"))


def _markdown(file: BinaryIO, request: ChildRequest) -> ChildAnswer:
    """Return the main content of a web page as Markdown."""
    convert = _imported("html_to_markdown", "convert_page")
    _confine(request.codec)
    file.seek(0)
    page = convert(file.read(), request.codec, request.extension)
    header = page._asdict()
    return ChildAnswer({"page": header}, header.pop("text").encode("utf-8", "replace"))


def _imported(module: str, function: str) -> Any:
    return getattr(import_module(f"internal.documents.{module}"), function)


def _confine(*further_codecs: str, may_start_threads: bool = False) -> None:
    """Import the lazily loaded modules, then deny the system calls that importing needs.

    Raises:
        DocumentUnreadable: the kernel refuses.
    """
    for name in filter(None, (*_CODECS, *further_codecs)):  # a codec is a module
        codecs.lookup(name)
    codecs.register(_imported_codec)
    codecs.unregister(encodings.search_function)
    try:
        deny_system_calls(may_start_threads=may_start_threads)
    except OSError as error:
        raise DocumentUnreadable("Files cannot be read safely on this machine.") from error


def _imported_codec(name: str) -> codecs.CodecInfo | None:
    try:
        return encodings.search_function(name)
    except OSError:  # it would have to be imported
        return None


def _kind_of_package(file: BinaryIO, extension: str) -> str:
    """Return the kind of document that a ZIP file holds, "zip" if none.

    If it is damaged, its extension decides, and the reader of that kind reports the damage.

    Raises:
        DocumentUnreadable: no reader reads the kind.
    """
    zipfile = import_module("zipfile")
    try:
        names = {entry_key(each) for each in zipfile.ZipFile(file).NameToInfo}
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        return extension if extension in PACKAGES else "zip"
    if "meta-inf/container.xml" in names:
        return "epub"
    if "content.xml" in names and (kind := _open_document_kind(zipfile.ZipFile(file))):
        return kind
    if "[content_types].xml" not in names and "_rels/.rels" not in names:
        return "zip"
    for part, kind in _OFFICE_PARTS.items():
        if any(name.startswith(part) for name in names):
            return kind
    return "zip"


def _open_document_kind(package: Any) -> str:
    """Return the kind of an OpenDocument file by its declared type, "" if it is another file."""
    if "mimetype" not in package.NameToInfo:
        return ""
    with package.open("mimetype") as entry:
        declared = entry.read(_MAX_TYPE_BYTES).decode("ascii", "replace").strip()
    for ending, kind in _OPEN_DOCUMENT_TYPES.items():
        if declared.startswith(f"application/vnd.oasis.opendocument.{ending}"):
            return kind
    return ""


def _kind_of_ole(file: BinaryIO, extension: str) -> str:
    """Return the kind of an OLE file that a reader reads, "ole" if there is none.

    A document may contain a workbook, and the other way round: then its extension decides.
    """
    file.seek(0)
    head = file.read(_OLE_SEARCH_BYTES)
    found = [kind for name, kind in _OLE_KINDS.items() if name.encode("utf-16-le") in head]
    if extension not in _WORKBOOK_EXTENSIONS and "msg" not in found:
        others = (name.encode("utf-16-le") in head for name in _OTHER_OLE_STREAMS)
        return "ole" if any(others) or not found else found[0]
    return found[0] if found else "ole"


def _refusal(file: BinaryIO, kind: str, extension: str) -> str:
    match kind:
        case "ole":
            file.seek(0)
            if _ENCRYPTED_OFFICE.encode("utf-16-le") in file.read(_OLE_SEARCH_BYTES):
                return "The Office file is encrypted: it opens with a password only."
            new = f".{extension}x" if extension in {"doc", "ppt"} else ".docx or .pptx"
            return f"Word and PowerPoint files from before 2007 are not read: save it as {new}."
        case "rtf":
            return "RTF files are not read: save it as .docx."
        case "picture" | "heif":
            return "It is a picture, which has no text."
        case _:
            return "It is a binary file of a kind that cannot be read."


if __name__ == "__main__":
    main(sys.argv[2:])
