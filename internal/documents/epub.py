"""EPUB: the chapters in reading order, as Markdown."""

from collections.abc import Iterator
from typing import BinaryIO

from internal.agent.domain.errors import DocumentUnreadable
from internal.documents.extraction import ExtractedDocument, clean
from internal.documents.html_to_markdown import convert
from internal.documents.package import PackageReader, local_attribute, open_package, resolve

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"


def read_epub(file: BinaryIO) -> ExtractedDocument:
    """Return the text of a book, a piece for each chapter.

    Raises:
        DocumentUnreadable: it is encrypted or damaged.
    """
    package = PackageReader(open_package(file, "EPUB"), "EPUB")
    chapters = _chapters(package)
    if not chapters:
        raise DocumentUnreadable("The EPUB file is damaged: it has no chapters.")
    if package.has(_ENCRYPTION) and not set(chapters).isdisjoint(_encrypted(package)):
        raise DocumentUnreadable("The EPUB file is encrypted (DRM).")
    return ExtractedDocument(len(chapters), _texts(package, chapters), "[The book has no text.]")


def _chapters(package: PackageReader) -> list[str]:
    for root in package.tree(_CONTAINER).iterfind("{*}rootfiles/{*}rootfile"):
        main = local_attribute(root, "full-path")
        tree = package.tree(main)
        folder = main.rpartition("/")[0]
        files = {
            local_attribute(item, "id"): resolve(folder, local_attribute(item, "href"))
            for item in tree.iterfind("{*}manifest/{*}item")
        }
        order = (local_attribute(item, "idref") for item in tree.iterfind("{*}spine/{*}itemref"))
        return [files[each] for each in order if each in files]
    return []


def _encrypted(package: PackageReader) -> set[str]:
    return {
        resolve("", local_attribute(each, "URI"))
        for each in package.tree(_ENCRYPTION).iterfind(".//{*}CipherReference")
    }


def _texts(package: PackageReader, chapters: list[str]) -> Iterator[str]:
    for number, chapter in enumerate(chapters, start=1):
        text = clean(convert(package.read(chapter), None)).strip()
        yield f"## Chapter {number}\n\n{text}\n\n" if text else ""
