"""The program of the child process that reads one file.

It is run as a file (`python -I -S child.py ARGUMENT…`), with the file on standard input, and
imports only what the kind of the file needs. The answer is one line of JSON, followed by the text
or the picture. The reader passes the kind that the beginning of the file has, so that nothing of
the file is read before the system calls are denied.
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
from internal.documents.extraction import cut
from internal.documents.kinds import PACKAGES

READERS = {
    "csv": ("plain_text", "read_text"),
    "docx": ("docx", "read_docx"),
    "epub": ("epub", "read_epub"),
    "gzip": ("archives", "read_tar"),
    "html": ("html_to_markdown", "read_html"),
    "pdf": ("pdf", "read_pdf"),
    "pptx": ("pptx", "read_pptx"),
    "tar": ("archives", "read_tar"),
    "text": ("plain_text", "read_text"),
    "tsv": ("plain_text", "read_text"),
    "xlsx": ("xlsx", "read_xlsx"),
    "zip": ("archives", "read_zip"),
}
"""The module of each kind, and its function from an open file to an `ExtractedDocument`."""

_OLE_SEARCH_BYTES = 4_000_000
_ENCRYPTED_OFFICE = "EncryptedPackage".encode("utf-16-le")
_CODECS = (
    *("ascii", "cp437", "gb18030", "idna", "latin-1", "unicode-escape", "utf-8-sig"),
    *("utf-16", "utf-16-be", "utf-16-le", "utf-32", "utf-32-be", "utf-32-le"),
)
_WEB_CODECS = (
    *("big5", "big5hkscs", "cp866", "euc-jp", "euc-kr", "gbk", "iso2022-jp", "koi8-r", "koi8-u"),
    *("hz", "iso2022-kr"),
    *("mac-cyrillic", "mac-roman", "shift-jis", "tis-620", "utf-7"),
    *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16)),
    *(f"cp{page}" for page in (874, 932, 949, 950, *range(1250, 1259))),
)
"""The encodings that a web page may name, besides those of files."""

_OPTIONAL_MODULES = ("PIL", "lxml", "numpy")
_OFFICE_FOLDERS = {"word/": "docx", "ppt/": "pptx", "xl/": "xlsx"}
_ARCHIVES = PACKAGES | {"zip"}


class ChildRequest(NamedTuple):
    """What is asked of the file: its text from `offset` on, the picture of a page, or Markdown.

    `kind` is the kind of the file, or the charset of HTML; `extension` that of its name, or the
    address of HTML. `offset` is also the number of a page.
    """

    wanted: Literal["text", "picture", "html"]
    kind: str
    extension: str
    offset: int
    size: int


class ChildAnswer(NamedTuple):
    """The header of an answer and what follows it."""

    header: dict[str, Any]
    content: bytes = b""


def main(arguments: list[str]) -> None:
    """Read the file on standard input and write the answer to standard output."""
    with open(os.devnull, "wb") as null:  # noqa: PTH123  # Path need not be imported
        os.dup2(null.fileno(), 2)  # libraries print to it, and the sandbox has one pipe for both
    memory, cpu, wanted, kind, extension, offset, size = arguments
    limit_resources(int(memory), int(cpu))
    answer = _answer(ChildRequest(wanted, kind, extension, int(offset), int(size)))  # type: ignore[arg-type]  # of the reader
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
    elif request.kind == "picture":
        prepare_picture = _imported("pictures", "prepare_picture")
        _confine()
        file.seek(0)
        picture, pages = prepare_picture(file), 1
    else:
        raise DocumentUnreadable("It is not a picture of a kind that can be shown.")
    media_type, width, height, content = picture
    header = {"media_type": media_type, "width": width, "height": height, "parts": pages}
    return ChildAnswer({**header, "unchanged": content is None}, content or b"")


def _text(file: BinaryIO, request: ChildRequest) -> ChildAnswer:
    kind = request.kind
    if kind not in READERS:
        _confine()
        raise DocumentUnreadable(_refusal(file, kind, request.extension))
    if kind == "xlsx":
        for module in _OPTIONAL_MODULES:  # openpyxl would import them, which takes time
            sys.modules.setdefault(module, None)  # type: ignore[arg-type]  # an import fails
    read = _imported(*READERS[kind])
    _confine()
    if kind in _ARCHIVES and (held := _kind_of_package(file, request.extension)) != kind:
        return ChildAnswer({"kind": held, "is_other_kind": True})
    file.seek(0)
    document = read(file)
    part = cut(document.pieces, request.offset, request.size)
    text = document.if_empty if part.total == 0 else part.text
    header = {"kind": kind, "parts": document.parts}
    header |= {"next_offset": part.next_offset, "total": part.total}
    return ChildAnswer(header, text.encode("utf-8", "replace"))


def _markdown(file: BinaryIO, request: ChildRequest) -> ChildAnswer:
    """Return the main content of a web page as Markdown."""
    convert = _imported("html_to_markdown", "convert_page")
    _confine(*_WEB_CODECS)
    file.seek(0)
    page = convert(file.read(), request.kind or None, request.extension)
    header = page._asdict()
    return ChildAnswer({"page": header}, header.pop("text").encode("utf-8", "replace"))


def _imported(module: str, function: str) -> Any:
    return getattr(import_module(f"internal.documents.{module}"), function)


def _confine(*further_codecs: str) -> None:
    """Import what is imported late, and deny the system calls for it.

    Raises:
        DocumentUnreadable: the kernel refuses.
    """
    for codec in (*_CODECS, *further_codecs):  # a codec is a module
        codecs.lookup(codec)
    codecs.register(_imported_codec)
    codecs.unregister(encodings.search_function)
    try:
        deny_system_calls()
    except OSError as error:
        raise DocumentUnreadable("Files cannot be read safely on this machine.") from error


def _imported_codec(name: str) -> codecs.CodecInfo | None:
    try:
        return encodings.search_function(name)
    except OSError:  # it would have to be imported
        return None


def _kind_of_package(file: BinaryIO, extension: str) -> str:
    """Return the kind of document that a ZIP file holds, "zip" if none.

    If it is damaged, its extension decides, and the reader of that kind says so.

    Raises:
        DocumentUnreadable: no reader reads the kind.
    """
    zipfile = import_module("zipfile")
    try:
        names = set(zipfile.ZipFile(file).NameToInfo)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        return extension if extension in PACKAGES else "zip"
    if "META-INF/container.xml" in names:
        return "epub"
    if "[Content_Types].xml" not in names:
        return "zip"
    if any(name.endswith("workbook.bin") for name in names):
        raise DocumentUnreadable("Binary workbooks (.xlsb) are not read: save it as .xlsx.")
    for folder, kind in _OFFICE_FOLDERS.items():
        if any(name.startswith(folder) for name in names):
            return kind
    return "zip"


def _refusal(file: BinaryIO, kind: str, extension: str) -> str:
    match kind:
        case "ole":
            file.seek(0)
            if _ENCRYPTED_OFFICE in file.read(_OLE_SEARCH_BYTES):
                return "The Office file is encrypted: it opens with a password only."
            new = (
                f".{extension}x" if extension in {"doc", "ppt", "xls"} else ".docx, .pptx or .xlsx"
            )
            return f"Office files from before 2007 are not read: save it as {new}."
        case "rtf":
            return "RTF files are not read: save it as .docx."
        case "picture":
            return "It is a picture, which has no text."
        case _:
            return "It is a binary file of a kind that cannot be read."


if __name__ == "__main__":
    main(sys.argv[2:])
