"""The program of the child process that reads one file.

It is run as a file (`python -I -S child.py ARGUMENT…`), with the file on standard input, and
imports only what the kind of the file needs. The answer is one line of JSON, followed by the text
or the picture.
"""

import codecs
import json
import os
import sys
from importlib import import_module
from typing import Any, BinaryIO, NamedTuple

if __name__ == "__main__":
    sys.path += sys.argv[1].split(os.pathsep)

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.confinement import deny_system_calls, limit_resources
from internal.documents.extraction import cut
from internal.documents.kinds import HEAD_BYTES, detect_kind, extension_of

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
_OPTIONAL_MODULES = ("PIL", "lxml", "numpy")
_OFFICE_FOLDERS = {"word/": "docx", "ppt/": "pptx", "xl/": "xlsx"}
_PACKAGES = frozenset({"docx", "epub", "pptx", "xlsx"})


class ChildRequest(NamedTuple):
    """What is asked of the file: its text from `offset` on, or the picture of a page."""

    wanted: str
    name: str
    offset: int
    size: int


class ChildAnswer(NamedTuple):
    """The header of an answer and what follows it."""

    header: dict[str, Any]
    content: bytes = b""


def main(arguments: list[str]) -> None:
    """Read the file on standard input and write the answer to standard output."""
    parent, memory, cpu, wanted, name, offset, size = arguments
    limit_resources(int(memory), int(cpu), int(parent))
    answer = _answer(ChildRequest(wanted, name, int(offset), int(size)))
    line = json.dumps(answer.header).encode() + b"\n"
    with os.fdopen(1, "wb", closefd=False) as output:
        output.write(line + answer.content)


def _answer(request: ChildRequest) -> ChildAnswer:
    try:
        before = _identity()
        with os.fdopen(0, "rb", closefd=False) as file:
            answer = (
                _picture(file, request.offset)
                if request.wanted == "picture"
                else _text(file, request)
            )
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


def _picture(file: BinaryIO, page: int) -> ChildAnswer:
    """Return a picture, or the picture of a page of a PDF."""
    file.seek(0)
    kind = detect_kind(file.read(HEAD_BYTES), "")
    if kind == "pdf":
        open_pdf, picture_of_page = (
            _imported("pdf", "open_pdf"),
            _imported("pictures", "picture_of_page"),
        )
        _confine()
        document = open_pdf(file)
        picture, pages = picture_of_page(document, page), len(document)
    elif kind == "picture":
        prepare_picture = _imported("pictures", "prepare_picture")
        _confine()
        picture, pages = prepare_picture(file), 1
    else:
        raise DocumentUnreadable("It is not a picture of a kind that can be shown.")
    media_type, width, height, content = picture
    header = {"media_type": media_type, "width": width, "height": height, "parts": pages}
    return ChildAnswer({**header, "unchanged": content is None}, content or b"")


def _text(file: BinaryIO, request: ChildRequest) -> ChildAnswer:
    file.seek(0)
    kind: str = detect_kind(file.read(HEAD_BYTES), request.name)
    if kind == "zip":
        kind = _kind_of_package(file, extension_of(request.name))
    if kind not in READERS:
        raise DocumentUnreadable(_refusal(file, kind, request.name))
    if kind == "xlsx":
        for module in _OPTIONAL_MODULES:  # openpyxl would import them, which takes time
            sys.modules.setdefault(module, None)  # type: ignore[arg-type]  # an import fails
    read = _imported(*READERS[kind])
    _confine()
    file.seek(0)
    document = read(file)
    part = cut(document.pieces, request.offset, request.size)
    text = document.if_empty if part.total == 0 else part.text
    header = {"kind": kind, "parts": document.parts}
    header |= {"next_offset": part.next_offset, "total": part.total}
    return ChildAnswer(header, text.encode("utf-8", "replace"))


def _imported(module: str, function: str) -> Any:
    return getattr(import_module(f"internal.documents.{module}"), function)


def _confine() -> None:
    for codec in _CODECS:  # a codec is a module, and none can be imported from here on
        codecs.lookup(codec)
    deny_system_calls()


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
        return extension if extension in _PACKAGES else "zip"
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


def _refusal(file: BinaryIO, kind: str, name: str) -> str:
    match kind:
        case "ole":
            file.seek(0)
            if _ENCRYPTED_OFFICE in file.read(_OLE_SEARCH_BYTES):
                return "The Office file is encrypted: it opens with a password only."
            old = extension_of(name)
            new = f".{old}x" if old in {"doc", "ppt", "xls"} else ".docx, .pptx or .xlsx"
            return f"Office files from before 2007 are not read: save it as {new}."
        case "rtf":
            return "RTF files are not read: save it as .docx."
        case "picture":
            return "It is a picture, which has no text."
        case _:
            return "It is a binary file of a kind that cannot be read."


if __name__ == "__main__":
    main(sys.argv[2:])
