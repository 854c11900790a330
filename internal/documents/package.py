"""ZIP files that hold a document (Office, EPUB), and their XML.

The XML is parsed by defusedxml: entities, which can name files or grow without bound, are refused.
"""

import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, BinaryIO
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse

from internal.agent.domain.errors import DocumentUnreadable

MAX_UNPACKED_BYTES = 300 * 1024 * 1024
"""A document that unpacks to more is refused. zipfile reads no more than an entry declares."""
MAX_ENTRIES = 20_000

_ENCRYPTED = 0x1
DAMAGE = (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, OSError, zlib.error)
"""What reading a damaged entry raises."""
_RELATIONSHIPS = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"


def open_package(file: BinaryIO, kind: str) -> zipfile.ZipFile:
    """Open a ZIP file that holds a document.

    Raises:
        DocumentUnreadable: it is damaged or encrypted, or unpacks to too much.
    """
    try:
        package = zipfile.ZipFile(file)
    except DAMAGE as error:
        raise DocumentUnreadable(f"The {kind} file is damaged: it cannot be unpacked.") from error
    entries = package.infolist()
    unpacked = sum(entry.file_size for entry in entries)
    if len(entries) > MAX_ENTRIES or unpacked > MAX_UNPACKED_BYTES:
        raise DocumentUnreadable(
            f"The {kind} file unpacks to {unpacked >> 20:,} MB in {len(entries):,} entries:"
            " this is too much."
        )
    return package


class PackageReader:
    """Reads the entries of an open package. `kind` names it in messages.

    Every method raises DocumentUnreadable when an entry is missing, encrypted or damaged.
    """

    def __init__(self, package: zipfile.ZipFile, kind: str) -> None:
        self._package = package
        self._kind = kind

    def has(self, name: str) -> bool:
        """Return True if there is such an entry."""
        return name in self._package.NameToInfo

    def size(self, name: str) -> int:
        """Return how many bytes an entry unpacks to."""
        return self._package.getinfo(name).file_size

    def open(self, name: str) -> IO[bytes]:
        """Open an entry."""
        try:
            if self._package.getinfo(name).flag_bits & _ENCRYPTED:
                raise DocumentUnreadable(f"The {self._kind} file is encrypted.")
            return self._package.open(name)
        except KeyError as error:
            raise DocumentUnreadable(
                f"The {self._kind} file is damaged: {name[:100]} is missing."
            ) from error
        except DAMAGE as error:
            raise self.damaged(name) from error

    def read(self, name: str) -> bytes:
        """Return the content of an entry."""
        try:
            with self.open(name) as entry:
                return entry.read()
        except DAMAGE as error:
            raise self.damaged(name) from error

    def events(self, name: str) -> Iterator[tuple[str, Element]]:
        """Yield `("start", element)` and `("end", element)` of an XML entry."""
        with self.open(name) as entry:
            try:
                yield from iterparse(entry, events=("start", "end"))
            except DefusedXmlException as error:
                raise DocumentUnreadable(
                    f"The {self._kind} file contains XML entities, which are not read."
                ) from error
            except (ParseError, *DAMAGE) as error:
                raise self.damaged(name) from error

    def tree(self, name: str) -> Element:
        """Return the root element of a small XML entry."""
        root = None
        for _, element in self.events(name):
            root = element
        if root is None:
            raise self.damaged(name)
        return root

    def relationships(self, part: str) -> dict[str, tuple[str, str]]:
        """Return the relationships of a part, "" for the package: id → (type, target).

        The type is the last component of its URI, the target the name of an entry.
        """
        folder, base = posixpath.split(part)
        name = posixpath.join(folder, "_rels", f"{base}.rels")
        if not self.has(name):
            return {}
        return {
            each.get("Id", ""): (
                each.get("Type", "").rpartition("/")[2],
                resolve(folder, each.get("Target", "")),
            )
            for each in self.tree(name).iter(_RELATIONSHIPS)
            if each.get("TargetMode") != "External"
        }

    def main_part(self) -> str:
        """Return the name of the main entry of an Office file."""
        for kind, target in self.relationships("").values():
            if kind == "officeDocument":
                return target
        raise DocumentUnreadable(f"The {self._kind} file is damaged: its main part is missing.")

    def damaged(self, name: str) -> DocumentUnreadable:
        """Return the error for an entry that cannot be read."""
        return DocumentUnreadable(f"The {self._kind} file is damaged at {name[:100]}.")


def resolve(folder: str, target: str) -> str:
    """Return the entry that a link in a folder of the package leads to."""
    path = unquote(target.partition("#")[0])
    return posixpath.normpath(posixpath.join("/", folder, path)).lstrip("/")


def local_name(element: Element) -> str:
    """Return the name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def local_attribute(element: Element, name: str) -> str:
    """Return an attribute of whatever namespace, "" if there is none."""
    for key, value in element.attrib.items():
        if key.rpartition("}")[2] == name:
            return value
    return ""


def relationship_id(element: Element) -> str:
    """Return the relationship that an element refers to; it may have an id of its own as well."""
    return next((value for key, value in element.attrib.items() if key.endswith("}id")), "")
